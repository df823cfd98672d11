"""Writes one sample: `python write_samples.py FORMAT OUT`, in an environment that has
the library (README.md names them), with OPENAI_BASE_URL at a gateway."""

import contextlib
import json
import sys
from pathlib import Path

from agent import ANSWERS, QUESTION, run


def spans(out):
    """Return a tracer whose spans are written to the file by OpenTelemetry itself."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider(resource=Resource({"service.name": "agent"}))
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(str(out))))
    trace.set_tracer_provider(provider)
    return provider.get_tracer("agent")


def genai(out):
    """opentelemetry-instrumentation-genai-openai: one client's calls, no span above."""
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor

    spans(out)
    OpenAIInstrumentor().instrument()
    run(QUESTION)


def traceloop(out):
    """opentelemetry-instrumentation-openai, of Traceloop."""
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    tracer = spans(out)
    OpenAIInstrumentor().instrument()
    with tracer.start_as_current_span("agent"):
        run(QUESTION)


def openinference(out):
    """openinference-instrumentation-openai, and its own spans for the tools."""
    from openinference.instrumentation import OITracer, TraceConfig
    from openinference.instrumentation.openai import OpenAIInstrumentor

    tracer = OITracer(spans(out), TraceConfig())
    OpenAIInstrumentor().instrument()

    def run_tool(call):
        name = call.function.name
        with tracer.start_as_current_span(name, openinference_span_kind="tool") as span:
            span.set_tool(name=name, parameters={})
            span.set_input(json.loads(call.function.arguments))
            span.set_output(ANSWERS[name])
            return ANSWERS[name]

    with tracer.start_as_current_span("agent", openinference_span_kind="agent"):
        run(QUESTION, run_tool)


def vcr(out):
    """vcrpy."""
    import vcr as library

    with library.use_cassette(str(out), filter_headers=["authorization"]):
        run(QUESTION)


def har(out):
    """mitmproxy: `mitmdump --mode reverse:URL --set hardump=OUT` in front."""
    run(QUESTION)


def browser(out):
    """A browser: a page that asks from the requests of the agent, and saves a HAR."""
    import os
    import threading
    import urllib.request
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    from playwright.sync_api import sync_playwright

    asked = json.loads(Path("run.jsonl").read_text(encoding="utf-8"))["exchanges"]
    first, second = (each["request"] for each in asked)
    second = {**first, "messages": [*first["messages"], *second["added"]]}

    class Handler(BaseHTTPRequestHandler):
        """The page, and the gateway behind the same origin."""

        def do_GET(self):
            self.answer(b"<title>agent</title>", "text/html")

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
            kind = {"content-type": "application/json"}
            with urllib.request.urlopen(
                urllib.request.Request(url, body, kind)
            ) as answer:
                self.answer(answer.read(), "application/json")

        def answer(self, body, kind):
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        program = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        context = program.new_context(record_har_path=out)
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        for request in (first, second):
            page.evaluate(
                "body => fetch('/v1/chat/completions', {method: 'POST', body})"
                ".then(reply => reply.text())",
                json.dumps(request, ensure_ascii=False),
            )
        context.close()
        program.close()


def langsmith(out):
    """LangSmith's wrapper of the client, and its spans for the tools."""
    import openai
    from langsmith import traceable
    from langsmith.wrappers import wrap_openai

    with langsmith_server(out) as client:

        def run_tool(call):
            tool = traceable(run_type="tool", name=call.function.name, client=client)
            work = tool(lambda **arguments: ANSWERS[call.function.name])
            return work(**json.loads(call.function.arguments))

        def agent(question):
            model = wrap_openai(
                openai.OpenAI(api_key="none"), tracing_extra={"client": client}
            )
            return run(question, run_tool, model)

        traceable(run_type="chain", name="agent", client=client)(agent)(QUESTION)


def langgraph(out):
    """create_react_agent, traced by LangChain for LangSmith; its messages as well."""
    from langchain_core.messages import messages_to_dict
    from langchain_core.tracers import LangChainTracer
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent

    def get_weather(city: str) -> str:
        """get_weather"""
        return ANSWERS["get_weather"]

    def calculate(expression: str) -> str:
        """calculate"""
        return ANSWERS["calculate"]

    model = ChatOpenAI(model="offline-demo", temperature=0, api_key="none")
    agent = create_react_agent(
        model, [get_weather, calculate], prompt="You are a helper."
    )
    with langsmith_server(out) as client:
        tracer = LangChainTracer(client=client)
        asked = {"messages": [("user", QUESTION)]}
        state = agent.invoke(asked, {"callbacks": [tracer]})
        tracer.wait_for_futures()
    messages = state["messages"]
    write(out.with_name("langgraph-state.json"), {
        "messages": [message.model_dump() for message in messages]
    })  # fmt: skip
    write(out.with_name("langchain-messages.json"), messages_to_dict(messages))
    from langchain_core.load import dumpd

    write(out.with_name("langchain-dumpd.json"), {"messages": dumpd(messages)})


def messages(out):
    """The messages of the openai client, as dicts."""
    write(out, run(QUESTION))


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")


@contextlib.contextmanager
def langsmith_server(out):
    """A LangSmith that keeps what its client posts, and at the end the runs, as
    `[run.dict() for run in client.list_runs()]` has them."""
    import threading
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    from langsmith import Client
    from langsmith.schemas import Run

    posted = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            data = json.loads(body)
            run_id = data.get("id") or self.path.rsplit("/", 1)[-1]
            posted.setdefault(run_id, {}).update(
                {key: value for key, value in data.items() if value is not None}
            )
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_PATCH = do_POST  # noqa: N815

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = Client(
        f"http://127.0.0.1:{server.server_port}",
        api_key="none",
        auto_batch_tracing=False,
    )
    yield client
    server.shutdown()
    runs = [Run(**data) for data in posted.values()]
    for each in runs:  # the machine it was written on is nobody's business
        each.extra = {k: v for k, v in (each.extra or {}).items() if k != "runtime"}
    lines = [each.model_dump_json(exclude={"serialized", "events"}) for each in runs]
    write(out, [json.loads(line) for line in lines])


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
