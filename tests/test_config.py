"""Settings, and the way from them to the wire."""

from __future__ import annotations

import http.client
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import openai
import pytest
from wire import LADDER, implementations

from config import Settings, load_settings, make_gateway, wire_url
from equivalence.errors import UsageError
from equivalence.gateway import Gateway, HttpUpstream, Script
from equivalence.runs.implementation import load
from equivalence.settings import endpoint_url
from offline_model import OfflineModel

ROOT = Path(__file__).parent.parent
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No .env but the test's own, no proxies, no LLM_ variables."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("LLM_") or name.upper() in PROXIES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "")  # so that what the code sets is taken back
    monkeypatch.setenv("no_proxy", "")
    return tmp_path


def post(url: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    address = url.removeprefix("http://")
    host, _, path = address.partition("/")
    connection = http.client.HTTPConnection(host, timeout=20)
    sent = {"Content-Type": "application/json", **headers}
    connection.request("POST", f"/{path}/chat/completions", json.dumps(body), sent)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, json.loads(data)


# ------------------------------------------------------------------------ reading


def test_the_defaults_are_offline() -> None:
    settings = load_settings()
    assert settings.base_url is None
    assert (settings.model, settings.temperature) == ("offline", 0.0)
    assert (settings.max_steps, settings.retries) == (10, 2)


def test_an_override_wins_over_the_environment_over_the_file(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty_folder / ".env").write_text(
        "LLM_MAX_STEPS=3\nLLM_SEED=5\nLLM_TEMPERATURE=0.5\n", encoding="utf-8"
    )
    monkeypatch.setenv("LLM_MAX_STEPS", "4")
    monkeypatch.setenv("LLM_TEMPERATURE", "0.6")
    settings = load_settings(max_steps=6, temperature=None)
    assert settings.max_steps == 6
    assert settings.temperature == 0.6
    assert settings.seed == 5
    assert load_settings(temperature=0).temperature == 0


def test_an_empty_variable_is_not_set(
    empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty_folder / ".env").write_text("LLM_SEED=\nLLM_MODEL=\n", encoding="utf-8")
    monkeypatch.setenv("LLM_BASE_URL", "")
    monkeypatch.setenv("LLM_API_KEY", "")
    settings = load_settings()
    assert (settings.base_url, settings.api_key) == (None, None)
    assert (settings.seed, settings.model) == (None, "offline")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_file_is_utf8_with_or_without_a_mark(
    empty_folder: Path, encoding: str, newline: str
) -> None:
    text = "LLM_MODEL=通义千问  # 模型\nOTHER=值\nLLM_SEED=3\n".replace("\n", newline)
    (empty_folder / ".env").write_bytes(text.encode(encoding))
    settings = load_settings()
    assert settings.model == "通义千问"
    assert settings.seed == 3


def test_a_file_that_is_not_utf8_is_named(empty_folder: Path) -> None:
    (empty_folder / ".env").write_bytes("LLM_MODEL=通义千问\n".encode("gbk"))
    with pytest.raises(UsageError, match=r"^\.env .*UTF-8") as caught:
        load_settings()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LLM_TEMPERATURE", "hot"),
        ("LLM_TEMPERATURE", "-1"),
        ("LLM_TEMPERATURE", "3"),
        ("LLM_MAX_STEPS", "0"),
        ("LLM_MAX_STEPS", "2.5"),
        ("LLM_TIMEOUT", "0"),
        ("LLM_RETRIES", "-1"),
        ("LLM_SEED", "x"),
        ("LLM_MAX_TOKENS", "0"),
        ("LLM_MAX_TOKENS_FIELD", "tokens"),
        ("LLM_EXTRA_BODY", "{enable_thinking: false}"),
        ("LLM_EXTRA_BODY", "[1]"),
        ("LLM_EXTRA_BODY", "enable_thinking"),
        ("LLM_STREAM", "maybe"),
        ("LLM_TOOL_RESULT_LIMIT", "0"),
        ("LLM_TOOL_CONCURRENCY", "0"),
        ("LLM_CLOCK", "noon"),
        ("LLM_BASE_URL", "127.0.0.1:8000/v1"),
        ("LLM_BASE_URL", "localhost:8000"),
        ("LLM_BASE_URL", "ftp://localhost/v1"),
        ("LLM_BASE_URL", "http://"),
        ("LLM_BASE_URL", "http://user:secret@localhost/v1"),
        ("LLM_BASE_URL", "user:secret@localhost"),
        ("LLM_BASE_URL", "//user:secret@localhost/v1"),
        ("LLM_BASE_URL", "http://user:secret/x@localhost/v1"),
        ("LLM_BASE_URL", "localhost?key=secret"),
        ("LLM_BASE_URL", "http://local host/v1?key=secret"),
        ("LLM_BASE_URL", "http://localhost:99999/v1?key=secret"),
        ("LLM_API_KEY", "sk-secret “quoted”"),
        ("LLM_API_KEY", "“sk-secret”"),
        ("LLM_API_KEY", "sk-sécret-secret"),
        ("LLM_API_KEY", "sk-secret 2"),
        ("LLM_API_KEY", "密钥secret"),
        ("LLM_TIMEOUT", "inf"),
        ("LLM_TIMEOUT", "1e10"),
        ("LLM_TIMEOUT", "nan"),
        ("LLM_TEMPERATURE", "nan"),
        ("LLM_EXTRA_BODY", '{"a": 1e999}'),
        ("LLM_EXTRA_BODY", '{"a": [NaN]}'),
        ("LLM_EXTRA_BODY", '{"a": "\\ud83d"}'),
    ],
)
@pytest.mark.parametrize("place", ["environment", "file"])
def test_a_bad_value_is_one_line_that_names_the_variable(
    empty_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    variable: str,
    value: str,
) -> None:
    if place == "environment":
        monkeypatch.setenv(variable, value)
    else:
        (empty_folder / ".env").write_text(f"{variable}={value}\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_settings(model="m")
    text = str(caught.value)
    assert text.startswith(f"{variable}: ")
    assert "\n" not in text
    assert len(text) > len(variable) + 8
    assert "secret" not in text


@pytest.mark.parametrize(
    "key", ["sk-a\nb", "sk-a\r\nX-Header: b", "sk-\x07a", "a\x00b"]
)
def test_a_key_that_no_header_can_carry_is_one_line(key: str) -> None:
    """B13: before any request, and without the key."""
    with pytest.raises(UsageError, match=r"^LLM_API_KEY: a key has neither") as caught:
        load_settings(api_key=key)
    assert "\n" not in str(caught.value)
    assert "sk-" not in str(caught.value)


def test_a_key_read_with_its_end_of_line_is_the_key() -> None:
    settings = load_settings(api_key=" sk-a\n")
    assert settings.api_key
    assert settings.api_key.get_secret_value() == "sk-a"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no such pipes")
def test_a_pipe_in_place_of_the_file_is_not_waited_for(empty_folder: Path) -> None:
    os.mkfifo(empty_folder / ".env")
    with pytest.raises(UsageError, match=r"^\.env is a pipe"):
        load_settings()


def test_a_folder_in_place_of_the_file_is_none(empty_folder: Path) -> None:
    (empty_folder / ".env").mkdir()  # a virtual environment, as some name it
    assert load_settings().model == "offline"


def test_an_address_without_a_scheme_is_told_the_scheme() -> None:
    with pytest.raises(UsageError, match="needs http:// or https://"):
        load_settings(base_url="127.0.0.1:8000/v1", model="m")


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings().max_steps = 3  # type: ignore[misc]


def test_no_record_holds_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_API_KEY", "sk-very-secret")
    settings = load_settings(base_url="https://models.example/v1", model="m")
    for text in (json.dumps(settings.recorded()), repr(settings), str(settings)):
        assert "sk-very-secret" not in text
    assert settings.recorded()["base_url"] == "https://models.example/v1"
    assert not {"api_key", "gateway_url"} & set(settings.recorded())


# ----------------------------------------------------------------- the endpoint


@pytest.mark.parametrize(
    "form",
    [
        "http://127.0.0.1:{port}",
        "http://127.0.0.1:{port}/",
        "http://127.0.0.1:{port}/v1",
        "http://127.0.0.1:{port}/v1/",
        "http://127.0.0.1:{port}/v1//",
        "  http://127.0.0.1:{port}/v1 \n",
        "http://127.0.0.1:{port}/v1/chat/completions",
        "http://127.0.0.1:{port}/v1/chat/completions/",
        "http://localhost:{port}",
        "HTTP://127.0.0.1:{port}/v1",
    ],
)
def test_what_people_paste_reaches_the_endpoint(
    monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    with http_server() as (url, asked):
        monkeypatch.setenv("LLM_BASE_URL", form.format(port=url.rpartition(":")[2]))
        with make_gateway(load_settings(model="m")) as front:
            status, reply = post(front.url, {"messages": []})
    assert status == 200, reply
    assert asked == ["/v1/chat/completions"]


@pytest.mark.parametrize(
    ("pasted", "used", "shown"),
    [
        (
            "https://x.example/openai/deployments/d/chat/completions?api-version=2024-10",
            "https://x.example/openai/deployments/d?api-version=2024-10",
            "https://x.example/openai/deployments/d?api-version=2024-10",
        ),
        (
            "https://x.example/v1/?key=SECRET&token=SECRET#SECRET",
            "https://x.example/v1?key=SECRET&token=SECRET",
            "https://x.example/v1?key=***&token=***",
        ),
        (
            "http://localhost:1?SECRET",
            "http://localhost:1/v1?SECRET",
            "http://localhost:1/v1?***=***",
        ),
    ],
)
def test_a_query_stays_behind_the_path_and_out_of_the_records(
    pasted: str, used: str, shown: str
) -> None:
    """B12."""
    settings = load_settings(base_url=pasted, model="m", api_key="k")
    assert settings.base_url == used
    assert settings.recorded()["base_url"] == shown


def test_a_path_of_its_own_is_kept() -> None:
    for url in ("https://models.example/api/v3", "https://models.example/openai"):
        assert endpoint_url(url + "/") == url


class KeySeen:
    """An upstream that keeps the Authorization header of each request."""

    def __init__(self) -> None:
        self.seen: list[str | None] = []
        self.model = OfflineModel()

    async def answer(self, request: dict[str, Any], authorization: str | None) -> Any:
        self.seen.append(authorization)
        return await self.model.answer(request, authorization)

    async def models(self, authorization: str | None) -> Any:
        return await self.model.models()

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("key", "sent"),
    [
        (None, "Bearer held-by-the-gateway"),
        ("", "Bearer held-by-the-gateway"),
        ("EMPTY", "Bearer EMPTY"),
    ],
)
def test_a_local_server_needs_no_key(
    monkeypatch: pytest.MonkeyPatch, key: str | None, sent: str
) -> None:
    if key is not None:
        monkeypatch.setenv("LLM_API_KEY", key)
    upstream = KeySeen()
    with Gateway(upstream) as server:
        settings = load_settings(base_url=server.url, model="m", retries=0)
        with make_gateway(settings) as front:
            settings = settings.model_copy(update={"gateway_url": front.url})
            for implementation in LADDER:
                load(implementation.target)("Hello", settings=settings)
    assert upstream.seen == [sent] * len(LADDER)


def test_a_remote_server_without_a_key_is_refused_before_any_request() -> None:
    with pytest.raises(UsageError, match=r"^LLM_API_KEY is not set") as caught:
        load_settings(base_url="https://models.example/v1", model="m")
    assert "\n" not in str(caught.value)


def test_an_endpoint_needs_the_name_of_a_model() -> None:
    with pytest.raises(UsageError, match=r"^LLM_MODEL is not set"):
        load_settings(base_url="http://127.0.0.1:1/v1")


def test_equal_settings_share_a_gateway() -> None:
    settings = Settings(_env_file=None)
    assert wire_url(settings) == wire_url(settings.model_copy(update={"seed": 3}))
    assert wire_url(settings) != wire_url(settings.model_copy(update={"repair": False}))
    elsewhere = settings.model_copy(update={"gateway_url": "http://127.0.0.1:1/v1"})
    assert wire_url(elsewhere) == "http://127.0.0.1:1/v1"


# --------------------------------------------------------------------- the proxy

ASK_ALL = """
import json
from pathlib import Path
from equivalence.runs.implementation import load
from equivalence.table import read_table

def text(message):
    return message["content"] if isinstance(message, dict) else message.content

ladder = read_table(Path(ROOT)).implementations.values()
answers = [text(load(i.target)("17 * 23")[-1]) for i in ladder]
print(json.dumps(answers))
"""


def python(*arguments: str, cwd: Path, **environment: str) -> Any:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("LLM_") and name.upper() not in PROXIES
    }
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_a_system_proxy_does_not_catch_requests_to_loopback(
    empty_folder: Path, kind: str
) -> None:
    dead = f"{kind}://127.0.0.1:9"
    proxies = {
        spelled: dead
        for name in PROXIES[:4]
        for spelled in (name, name.lower())
        if spelled != "openai_proxy"
    }
    code = f"ROOT = {str(ROOT)!r}{ASK_ALL}"
    done = python("-c", code, cwd=empty_folder, **proxies)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    answers = json.loads(done.stdout)
    assert len(answers) == len(LADDER)
    assert all("391" in answer for answer in answers), answers


@contextmanager
def http_server() -> Iterator[tuple[str, list[str]]]:
    """An endpoint, or a proxy for all of them; it keeps what was asked of it."""
    asked: list[str] = []

    class Endpoint(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            message = {"role": "assistant", "content": "from far away"}
            body = json.dumps({"choices": [{"index": 0, "message": message}]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_system_proxy_is_used_for_a_remote_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with http_server() as (url, asked):
        monkeypatch.setenv("HTTP_PROXY", url)
        monkeypatch.setenv("http_proxy", url)
        settings = load_settings(
            base_url="http://models.invalid/v1", model="m", api_key="k"
        )
        wire_url(settings.model_copy(update={"gateway_url": "http://127.0.0.1:1/v1"}))
        with make_gateway(settings) as front:
            status, reply = post(front.url, {"messages": []})
    assert status == 200, reply
    assert reply["choices"][0]["message"]["content"] == "from far away"
    assert asked == ["http://models.invalid/v1/chat/completions"]


# ---------------------------------------------------------------------- the wire


def first_request(implementation: Any, gateway: Gateway, settings: Settings) -> Any:
    with gateway.open_run() as log:
        settings = settings.model_copy(update={"gateway_url": log.url})
        load(implementation.target)("Hello", settings=settings)
    return log.exchanges[0].request


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        ({}, {"model": "offline", "temperature": 0.0, "stream": False}),
        (
            {"seed": 7, "temperature": 0.7, "model": "qwen"},
            {"model": "qwen", "temperature": 0.7, "seed": 7, "stream": False},
        ),
        ({"seed": 0}, {"seed": 0}),
        ({"max_tokens": 256}, {"max_tokens": 256}),
        (
            {"max_tokens": 256, "max_tokens_field": "max_completion_tokens"},
            {"max_completion_tokens": 256},
        ),
        (
            {"extra_body": {"enable_thinking": False, "top_k": 20}, "max_tokens": 9},
            {"enable_thinking": False, "top_k": 20, "max_tokens": 9},
        ),
        ({"stream": True}, {"stream": True}),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else None,
)
def test_the_settings_reach_the_wire_equally_in_all(
    gateway: Gateway,
    offline_settings: Settings,
    settings: dict[str, Any],
    fields: dict[str, Any],
) -> None:
    found: dict[str, dict[str, Any]] = {}
    for implementation in LADDER:
        sent = first_request(
            implementation, gateway, offline_settings.model_copy(update=settings)
        )
        assert {name: sent.get(name) for name in fields} == fields, implementation.name
        given_by_the_tier = ("messages", "tools", "stop")
        found[implementation.name] = {
            name: value for name, value in sent.items() if name not in given_by_the_tier
        }
    usual = {"model", "temperature", "stream"}
    for name, sent in found.items():
        assert sent == found[LADDER[0].name], name
        assert set(sent) <= usual | set(fields), name


NAMED = [
    "o1",
    "o3-mini",
    "gpt-5-mini",
    "gpt-5.1",
    "gpt-5-pro",
    "codex",
    "gpt-6",
    "任意",
]


@pytest.mark.parametrize("model", NAMED)
def test_no_rule_hangs_on_the_name_of_a_model(
    model: str, gateway: Gateway, offline_settings: Settings
) -> None:
    """B3: roles, temperature and limit are the same for every name, in all."""
    plain = offline_settings.model_copy(update={"max_tokens": 5, "seed": 1})
    named = plain.model_copy(update={"model": model})
    for implementation in LADDER:
        expected = first_request(implementation, gateway, plain) | {"model": model}
        assert first_request(implementation, gateway, named) == expected


@implementations
@pytest.mark.parametrize("stream", [False, True])
def test_half_characters_are_replaced_in_all(
    implementation: Any, stream: bool, gateway: Gateway, offline_settings: Settings
) -> None:
    """B20: in a question, and in a history."""
    half = "half \ud83d of 17 * 23"
    agent = load(implementation.target)
    with gateway.open_run() as log:
        settings = offline_settings.model_copy(
            update={"gateway_url": log.url, "stream": stream}
        )
        history = agent(half, settings=settings)
        agent(half, history=history, settings=settings)
    sent = [message["content"] for message in log.exchanges[-1].request["messages"]]
    assert "half ? of 17 * 23" in sent
    assert not [text for text in sent if text and "\ud83d" in text]


@implementations
def test_an_extra_field_satisfies_a_server_that_wants_it(
    implementation: Any, gateway: Gateway, offline_settings: Settings
) -> None:
    final = {"content": "Final Answer: done"}  # in words that text ReAct reads too
    script = Script([{"message": final}], require={"enable_thinking": 0})
    log = gateway.open_run(script)
    without = offline_settings.model_copy(update={"gateway_url": log.url, "retries": 2})
    agent = load(implementation.target)
    with pytest.raises(openai.BadRequestError, match="enable_thinking=0"):
        agent("hi", settings=without)
    assert len(log.exchanges) == 1  # a refusal is not worth a second try
    extra = without.model_copy(update={"extra_body": {"enable_thinking": 0}})
    assert "done" in str(agent("hi", settings=extra)[-1])
    assert len(log.exchanges) == 2


# -------------------------------------------------------------- nothing at import

IMPORT_ALL = """
import importlib, json, sys

seen = []

def hook(event, arguments):
    if event in ("socket.bind", "socket.connect", "socket.getaddrinfo",
                 "subprocess.Popen", "os.system", "os.mkdir", "os.rename"):
        if arguments[-1] != ("::1", 0):  # urllib3, in LangChain, asks for IPv6
            seen.append(f"{event} {arguments}")
    if event == "open":
        path, mode, _ = arguments
        if str(path).endswith(".env") or (mode and set(str(mode)) & set("wax+")):
            seen.append(f"open {path} {mode}")

sys.addaudithook(hook)
before = dict(__import__("os").environ)
for name in sys.argv[1:]:
    importlib.import_module(name)
    if seen:
        break
import os, threading
changed = dict(os.environ) != before
print(json.dumps([name, seen, changed, threading.active_count()]), file=sys.stderr)
"""


def modules() -> list[str]:
    """Every module of the repository that is meant to be imported."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT)
        hidden = any(part.startswith(".") for part in place.parts)
        if hidden or place.parts[0] in ("tests", "docs") or path.stem == "__main__":
            continue
        parts = place.with_suffix("").parts
        found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


@pytest.mark.slow
def test_importing_any_module_does_nothing(empty_folder: Path) -> None:
    (empty_folder / ".env").write_text("LLM_MAX_STEPS=broken\n", encoding="utf-8")
    assert {"config", "chat", "equivalence.gateway.server", "equivalence.cli"} < set(
        modules()
    )
    done = python("-B", "-c", IMPORT_ALL, *modules(), cwd=empty_folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert json.loads(done.stderr) == [modules()[-1], [], False, 1]


def test_the_clock_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_CLOCK", "2024-02-29T12:00:00+08:00")
    assert load_settings().clock == datetime.fromisoformat("2024-02-29T12:00:00+08:00")


def test_the_timeout_and_the_key_are_the_gateways() -> None:
    settings = load_settings(
        base_url="http://127.0.0.1:1/v1", model="m", api_key="k", timeout=3
    )
    gateway = make_gateway(settings)
    assert isinstance(gateway.upstream, HttpUpstream)
    assert (gateway.timeout, gateway.upstream.key) == (3, "k")
