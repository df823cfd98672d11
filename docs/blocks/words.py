"""Chinese for the sentences of the blocks, and of the code that only pages show.

What is printed for people is in the catalogue of equivalence/locale/ and not here. A
sentence that was changed in the code is not found under its old words.
"""

CHINESE = {
    # the blocks
    " or ": " 或 ",
    "not set": "未设置",
    "from {places}": "出自 {places}",
    "{went} lines go, {came} come: {left} to {right}": (
        "删 {went} 行，增 {came} 行：从 {left} 到 {right}"
    ),
    "file": "文件",
    "lines of code": "代码行数",
    "together": "合计",
    "[… this line varies]": "[… 这一行每次不同]",
    "[… {count} more lines]": "[… 省略 {count} 行]",
    "[… the traces: the picture above]": "[… 轨迹见上图]",
    "[… the traces: the table below]": "[… 轨迹见下表]",
    "turn": "轮次",
    "- **{name}**: {sentence}": "- **{name}**：{sentence}",
    "variable": "变量",
    "default": "默认值",
    "what it is": "说明",
    "the endpoint's words have": "端点的报错里有",
    "what to do": "怎么办",
    "where it starts": "起点代码",
    "**{number} {title}.** {task}": "**{number} {title}**。{task}",
    "`python -m exercises start {number}` copies {start} to\n"
    "`my_agent.py`; `check {number}` says PASS, or FAIL and why;\n"
    "`hint {number}` and `solution {number}` help.": (
        "`python -m exercises start {number}` 把{start}复制为 `my_agent.py`；"
        "`check {number}` 给出 PASS，或者 FAIL 和原因；"
        "需要帮助时用 `hint {number}` 和 `solution {number}`。"
    ),
    # the ladder
    "stage": "阶段",
    "what you hold in your hands": "你手里有什么",
    "lines": "行数",
    "what is gone": "去掉了什么",
    "a model, tools, a prompt": "模型、工具、提示词",
    "nothing yet": "还什么都没去掉",
    "the same, for `langchain.agents.create_agent`": (
        "同上，换成 `langchain.agents.create_agent`"
    ),
    "nothing: it replaces create_react_agent, which is deprecated": (
        "没有去掉什么：它取代已弃用的 create_react_agent"
    ),
    "nodes, edges, a state": "节点、边、状态",
    "the prebuilt graph": "预置的图",
    "a `for` loop over a list of messages": "消息列表上的一个 `for` 循环",
    "langgraph: graph, state, checkpoints": "langgraph：图、状态、检查点",
    "dicts and the `openai` client": "dict 和 `openai` 客户端",
    "LangChain: message classes, schemas, reading replies": (
        "LangChain：消息类、schema、解析回复"
    ),
    "a prompt and a parser": "一段提示词和一个解析器",
    "the model's own tool calling: it writes its calls as text": (
        "模型自带的工具调用：调用改写成文本"
    ),
    # pictures
    "turn {number}: the model asks, the tools answer": (
        "第 {number} 轮：模型发起调用，工具返回结果"
    ),
    "answer": "回答",
    "The judge: {left} vs {right}: equivalent": (
        "判定：{left} vs {right}：equivalent（等价）"
    ),
    "The judge: {left} vs {right}: different, cause: {cause}, model call {number}": (
        "判定：{left} vs {right}：different（不同），原因：{cause}，模型调用 {number}"
    ),
    "{name} sent: {value}": "{name} 发送：{value}",
    "stage 4, no memory": "阶段 4，无记忆",
    "stage 5": "阶段 5",
    "stage 4, budget 400": "阶段 4，预算 400",
    # scenarios
    "scenarios": "场景数",
    "implementation": "实现",
    "same bytes": "字节相同",
    "ends": "结束状态",
    "parts from the first": "与基线的分歧",
    "there": "基线的值",
    "here": "它的值",
    "why": "原因",
    "fault": "故障",
    "what it does wrong": "错在哪里",
    "cause": "原因",
    "kind of peculiarity": "场景类别",
    "`{name}`: {why}": "`{name}`：{why}",
    "{cause}, model call {number}, `{path}`": "{cause}，模型调用 {number}，`{path}`",
    "create_react_agent as it comes": "原样的 create_react_agent",
    "create_agent as it comes": "原样的 create_agent",
    "the article's StateGraph": "文章里的 StateGraph",
    "the article's StateGraph with langgraph's ToolNode": (
        "文章里的 StateGraph，工具节点换成 langgraph 的 ToolNode"
    ),
    "the article's for-loop": "文章里的 for 循环",
    "One call a turn, the second with the result of the first.": (
        "每轮一个调用，第二个用到第一个的结果。"
    ),
    "Two calls in one turn, to the same tool; both results are kept.": (
        "同一轮里对同一个工具调用两次，两个结果都保留。"
    ),
    "Any exception of a tool becomes an error message, without path or traceback.": (
        "工具抛出的任何异常都变成一条错误消息，不带路径和 traceback。"
    ),
    "The model invents a tool; the error lists the real ones in their order.": (
        "模型编造了一个不存在的工具；错误消息按顺序列出真正的工具。"
    ),
    "An empty object for a tool that needs an argument.": (
        "工具需要参数，给的却是空对象。"
    ),
    "A dict with Chinese in it, as JSON that stays readable.": (
        "返回含中文的 dict，转成 JSON 后仍然可读。"
    ),
    "None, True, whole and decimal numbers, as JSON writes them.": (
        "None、True、整数和小数，按 JSON 的写法。"
    ),
    "Two model calls.": "预算是两次模型调用。",
    "Without tools the request has no tools key at all.": (
        "没有工具时，请求里根本没有 tools 这个键。"
    ),
    "Without repairs a broken call ends the run at once, with nothing said.": (
        "关闭修复后，坏掉的调用让运行立刻结束，什么也没说。"
    ),
    "Without repairs the broken call stays in the history without a result.": (
        "关闭修复后，坏掉的调用留在历史里，没有对应的结果。"
    ),
    "calls as text": "写成文本的调用",
    "content": "content 字段",
    "conversation": "多轮对话",
    "happy path": "正常路径",
    "http": "HTTP",
    "limits": "上限",
    "order": "顺序",
    "reasoning": "思考内容",
    "tool errors": "工具出错",
    "tool names": "工具名",
    "tool results": "工具结果",
    "which of two threads is first is chance": "两个线程谁先谁后，全凭运气",
    "the same, with a tool that takes longer": "同上，其中一个工具耗时更长",
    "whether two calls meet is a matter of time": "两个调用能否碰到一起，要看时机",
    "create_react_agent alone, which is the first, takes the server's name off the"
    " message": (
        "只有 create_react_agent（也就是基线）会把服务端写的 name 从消息上去掉"
    ),
    "it reads replies itself, and what langchain's client fails on or drops without"
    " repairs it answers": (
        "它自己解析回复；关闭修复时 langchain 客户端会报错或丢弃的内容，它能回应"
    ),
    "create_agent itself puts a tool message behind a call that did not parse": (
        "create_agent 会自己在解析失败的调用后面补一条 tool 消息"
    ),
    # the file of accepted differences
    "Differences that somebody knows and accepts, as a file lists them.": (
        "已知并且接受的不同，列在一个文件里。"
    ),
    "It is TOML, one entry a difference, each with a reason; of the other fields those"
    " that\nstand there must all be those of the verdict. In texts, * stands for"
    " anything:": (
        "文件是 TOML，一条一项，每项都要有理由（reason）；其他字段写了哪些，"
        "就要与判定的哪些全部相符。文本里的 * 匹配任意内容："
    ),
    '    [[accepted]]\n    reason = "the new client sends no temperature"\n'
    '    left = "old"                  # names of the implementations\n'
    '    right = "new"\n    question = "*weather*"\n'
    '    verdict = "different"         # or "inconclusive", where both fail alike\n'
    '    cause = "request"\n    path = "$.temperature"\n'
    '    error = "*no such model*"     # of both runs, where they failed': (
        '    [[accepted]]\n    reason = "新客户端不发送 temperature"\n'
        '    left = "old"                  # 两个实现的名字\n'
        '    right = "new"\n    question = "*天气*"\n'
        '    verdict = "different"         # 或者 "inconclusive"：两边同样失败\n'
        '    cause = "request"\n    path = "$.temperature"\n'
        '    error = "*no such model*"     # 两边都失败时，双方的错误'
    ),
    # the parser of stage 5
    "The parser: from the text of a reply to an action, an answer, or neither.": (
        "解析器：从回复的文本里读出行动、回答，或者都不是。"
    ),
    "A reply is read label by label; of what is written the first action or answer"
    " counts:": "回复按标签逐个读；写了几个行动或回答时，第一个算数：",
    "- The arguments end where the JSON ends. Text behind them, further actions and"
    " invented\n  observations are dropped; nothing of them enters the conversation.\n"
    "- Arguments may also be a Python dict, name=value pairs, stand in a code fence or"
    " in\n  brackets on the action's line; bare text is the only parameter of a tool"
    " that has one,\n  without the punctuation, brackets or label around it.\n"
    "- An answer goes on to the next label at the start of a line.\n"
    "- Plain text without a label is never an answer: it may be half a thought. The"
    " model is\n  reminded of the format instead.": (
        "- 参数到 JSON 结束为止。后面的文本、更多的行动和编出来的观察都丢掉，"
        "不会进入对话。\n"
        "- 参数也可以写成 Python 的 dict、name=value 的形式，可以放在代码围栏里，"
        "或者放在行动那一行的括号里；工具只有一个参数时，可以只写内容，"
        "两边的标点、括号或标签会去掉。\n"
        "- 回答一直到下一个出现在行首的标签为止。\n"
        "- 没有标签的纯文本绝不算回答：它可能只是半个想法。这时提醒模型注意格式。"
    ),
    # planted faults
    "The system message stands behind the conversation.": "system 消息放到了对话末尾。",
    "The system message stands there twice.": "system 消息出现了两次。",
    "The system prompt has one space at its end.": "系统提示词末尾多一个空格。",
    "The last tool result of each turn gets lost.": "每轮丢掉最后一个工具结果。",
    "The tool results of a turn stand in reverse order.": "同一轮的工具结果顺序颠倒。",
    "It asks at temperature 0.7.": "请求时 temperature 是 0.7。",
    "Its requests have one field more.": "请求里多一个字段。",
    "It forgets the conversation before the question.": "忘掉本次提问之前的对话。",
    "Its budget is one model call short.": "预算少一次模型调用。",
    "Its budget is one model call too large.": "预算多一次模型调用。",
    "It ends in silence when a tool fails.": "工具一出错就默默结束。",
    "It runs the calls of a turn last first, and sorts the results afterwards.": (
        "同一轮的调用倒着执行，再把结果排回原来的顺序。"
    ),
    "It raises once a tool has failed.": "工具出过错之后抛异常。",
    "It changes the model's answer before it returns it.": "返回前改动模型的回答。",
    # the gateway's repairs
    "a tool call written as text became a structured call": (
        "写成文本的工具调用变成了结构化的调用"
    ),
    "function_call, the old field, became a tool call": (
        "旧字段 function_call 变成了工具调用"
    ),
    "tool_calls was not a list of calls with a name": (
        "tool_calls 不是带名字的调用的列表"
    ),
    "a tool call was dropped: the request offered no tools": (
        "丢掉了一个工具调用：请求里没有提供工具"
    ),
    "arguments came as an object and became JSON text": (
        "参数是对象，已变成 JSON 文本"
    ),
    "arguments were null, empty or missing and became {}": (
        "参数为 null、为空或缺失，已变成 {}"
    ),
    "arguments were JSON text inside JSON text": "参数是套在 JSON 文本里的 JSON 文本",
    "arguments held raw control characters": "参数里有未转义的控制字符",
    "arguments that are not a JSON object are passed on as an error for the model,"
    " never executed": "参数不是 JSON 对象：作为给模型的错误传下去，绝不执行",
    "the reply broke off inside the call: it is passed on as an error for the model,"
    " never executed": "回复在调用中间断了：作为给模型的错误传下去，绝不执行",
    "a vendor's own word for why the reply ended became the usual one": (
        "厂商自创的回复结束原因换成了通用的词"
    ),
    "a tool call id was missing, empty or used before": (
        "工具调用的 id 缺失、为空或已经用过"
    ),
    "a think block was moved out of the text": "思考块移出了文本",
    "a stream turned out to have begun inside a think block after its text had been"
    " passed on, so it stays there": (
        "流的开头原来在思考块里，发现时文本已经传下去，所以留在了那里"
    ),
    "content came as typed blocks, or as something else than text": (
        "content 是带类型的块，或者是文本以外的东西"
    ),
    "half characters, which no request can carry, were replaced": (
        "半个字符（孤立的代理项）无法放进请求，已替换"
    ),
    "an error in a form of the server's own was put into OpenAI's": (
        "服务端自创格式的错误换成了 OpenAI 的格式"
    ),
    # settings
    "The model's endpoint; None is the offline model.": (
        "模型端点；不设置时用离线模型。"
    ),
    "The endpoint's key; none for a server that wants none.": (
        "端点的密钥；服务端不要密钥时写 none。"
    ),
    "The name that the endpoint knows the model by.": "端点所认的模型名。",
    "0 to 2.": "0 到 2。",
    "Sent with each request, for servers that honour it.": (
        "随每个请求发送，对支持它的服务端有效。"
    ),
    "Budget: the most model calls one run may make.": (
        "预算：一次运行最多调用模型几次。"
    ),
    "The longest that one model call may take, in seconds.": (
        "一次模型调用最长等多久，单位秒。"
    ),
    "How often the client repeats a model call that failed.": (
        "模型调用失败时，客户端重试几次。"
    ),
    "The longest reply.": "回复的最大长度。",
    "Servers differ in the name they accept for the output limit.": (
        "输出上限用哪个字段名，各家服务端不同。"
    ),
    'Fields added to every request, for example {"enable_thinking": false}.': (
        '加进每个请求的字段，例如 {"enable_thinking": false}。'
    ),
    "Whether the client asks for a stream.": "客户端是否请求流式。",
    "Characters of a tool result; the rest is cut, visibly.": (
        "工具结果的字符上限；超出部分截断，并注明。"
    ),
    "How many tool calls of one turn run at the same time.": (
        "同一轮的工具调用有几个同时执行。"
    ),
    "What get_current_time answers; None is the real time.": (
        "get_current_time 返回的时间；不设置时是真实时间。"
    ),
    "Whether the gateway repairs broken replies (--raw switches it off).": (
        "网关是否修复坏掉的回复（--raw 关闭它）。"
    ),
    "Whether the gateway sends a model its reasoning back (DeepSeek wants that).": (
        "网关是否把思考内容发回给模型（DeepSeek 要求）。"
    ),
    "Whether the gateway gives a server back what it attached to calls and messages,"
    " such as thought signatures; clients strip it.": (
        "网关是否把服务端附在调用和消息上的内容（如思考签名）原样送回；客户端会把它丢掉。"
    ),
    "Over which API the gateway asks the endpoint: /v1/chat/completions, which nearly"
    " every server has, or /v1/responses.": (
        "网关用哪个 API 访问端点：几乎所有服务端都有的 /v1/chat/completions，"
        "或 /v1/responses。"
    ),
    "The gateway to talk to; None starts one in this process when it is needed.": (
        "要连接的网关；不设置时，需要时在本进程内启动一个。"
    ),
}
