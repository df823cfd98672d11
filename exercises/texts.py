"""All that the exercises say to a learner, in one place, so that it can be translated.

For each exercise: its title, its task, a hint, what its checker tries, and the reasons
for which it fails. "any" holds what belongs to all of them.
"""

from __future__ import annotations

TEXTS: dict[str, dict[str, str]] = {
    "any": {
        # the command line
        "several": "{wanted} is several exercises: {names}",
        "no_exercise": "no exercise is called {wanted!r}: {names}",
        "no_file": "{file} is not there: python -m exercises start {number}",
        "is_there": "{file} is already there and is not overwritten: move it away, or"
        " give another name: --file NAME.py",
        "no_folder": "{file} cannot be written: {reason}",
        "started": "{file} is where exercise {number} starts.",
        "then": "Check it with: python -m exercises check {number}{file}",
        "pass": "PASS  {number} {name}: {tries}",
        "fail": "FAIL  {number} {name}: {reason}",
        "more": "A hint: python -m exercises hint {number}",
        "too_long": "the check has not ended after {seconds} seconds: {file} waits for"
        " something that never comes, or never stops.",
        # what can be wrong with any file
        "cannot_import": "{file} cannot be imported: {where}{error}",
        "no_attribute": "{file} has no {name}.",
        "raised": "run_agent failed: {where}{error}",
        "no_model_call": "run_agent called no model. Does it pass its settings on, to"
        " chat_model(settings) or openai_model(settings)?",
        "refused": "a strict server refused a request, because the conversation in it"
        " breaks a rule. Its words stand at the end.",
        "never_stops": "this agent sends one request after another and never stops",
        "not_completed": "the run came to no answer; its status is {status}.",
        "length": "the conversation that run_agent returned has {wanted[1]} messages"
        " and should have {wanted[0]}.",
        # what was seen
        "asked": "Asked: {question}",
        "not_run": "(not run)",
        "judge": "The judge, against {baseline}: cause {cause}, model call {number},"
        " {path}",
    },
    "first_tool": {
        "title": "Give the agent of twenty lines a tool",
        "task": "A model reads pieces of words and does not see their letters. Write a"
        " tool count_letters(word, letter), which tells how often a letter stands in a"
        " word, and offer it to the model. Capital and small letters count alike.",
        "hint": "A tool is a function. Its name, its type hints and its docstring are"
        " all that the model gets to read: without hints the model does not know that"
        " the arguments are texts. A tool message holds text, so return a text. And"
        " the agent offers what stands in TOOLS.",
        "tries": "The new tool is offered with two texts as parameters; several words,"
        " capital letters and Chinese are counted; the other tools are still there.",
        "not_offered": "the model is not offered a tool count_letters: it must stand in"
        " TOOLS.",
        "tool_lost": "{name} is no longer in TOOLS.",
        "parameters": "the model reads of the parameters {parameters}; it should read"
        " word and letter, each of the type string, both required.",
        "wrong_count": "count_letters({word!r}, {letter!r}) should tell {wanted}.",
        "not_the_same": "with the old tools alone the agent is not what it was.",
    },
    "ask_a_person": {
        "title": "Ask a person before a critical tool runs",
        "task": "Before get_stock_price runs, ask the person at the keyboard with"
        " input(). Show the name of the tool and its arguments. Only y lets it run. If"
        " it does not run, the model is told so, and the run goes on.",
        "hint": "All calls pass the one function that is wrapped around them. There,"
        " before run_tool, is the place to ask. What you return instead of a result is"
        " a ToolMessage like any other, with the status error.",
        "tries": "The person says n, y, presses Enter alone, and is asked for each of"
        " two calls of one turn; weather needs no approval; with y it is the agent it"
        " was.",
        "nobody_asked": "get_stock_price has run, and nobody was asked.",
        "ran_although_no": "the person answered {answer!r}, and get_stock_price has run"
        " all the same. Only y lets it run.",
        "yes_is_not_enough": "the person answered y, and get_stock_price has not run.",
        "not_told": "get_stock_price has not run, but no tool message tells the model.",
        "hidden_call": "the person was asked {prompt!r}. This question does not show"
        " which call it is: show the name of the tool and its arguments.",
        "asked_too_much": "the person was asked before get_weather, too. Only"
        " get_stock_price is critical.",
        "once_for_two": "two calls of get_stock_price in one turn, and the person was"
        " asked {times} times. Each call needs an approval of its own.",
        "wrong_call": "the person allowed 腾讯 and not 苹果; what has run is {ran}.",
        "not_the_same": "where the person says y, it is not the agent it was.",
    },
    "return_direct": {
        "title": "An answer that needs no model",
        "task": "In create_react_agent a tool may have return_direct: once it has run,"
        " the run is over, and its result is the answer. Build that into the graph of"
        " stage 2, for the tools in RETURN_DIRECT.",
        "hint": "Today one edge leads from the tools to the model. Make it a"
        " conditional edge. A turn may have asked for several tools, so look at all"
        " results of the last turn, and at no earlier ones.",
        "tries": "The judge compares with create_react_agent: one call, two calls of"
        " one turn in both orders, a call that fails, a tool that is not in the list,"
        " and a second question of a conversation.",
        "one_call": "after get_stock_price has run, the run should be over.",
        "other_tool": "get_weather is not in RETURN_DIRECT: after it the model should"
        " be asked again.",
        "first_of_two": "get_stock_price was the first of two calls of one turn. That"
        " it was not the last one does not matter: the run should be over.",
        "last_of_two": "get_stock_price was the second of two calls of one turn. The"
        " run should be over.",
        "failed_call": "get_stock_price was called and has failed. The framework ends"
        " the run all the same.",
        "later_turn": "get_stock_price was called in the second turn of the question."
        " The run should be over then, and not before.",
        "conversation": "an earlier question had called get_stock_price; this one did"
        " not. What counts are the results of the last turn.",
    },
    "serial": {
        "title": "One tool at a time, and no invented 300",
        "task": "Make the model ask for one tool at a time, by one more field in each"
        " request. At temperature 0.7 the model of chapter 3 asked for the price and"
        " for the product in one turn, and made up the price: 300. Asked for one tool"
        " at a time, it cannot.",
        "hint": "The field is parallel_tool_calls, of OpenAI's chat completions. What"
        " bind_tools does not know it passes on as a field of the request. A server"
        " refuses the field where no tools are offered.",
        "tries": "One call a turn for two cities; the field is the only difference"
        " from stage 3, in every request; without tools there is none; at seed 7 and"
        " temperature 0.7 no number is made up.",
        "several_calls": "in turn {turn} the model asked for several tools at once.",
        "no_field": "model call {number} has no field parallel_tool_calls that is"
        " false.",
        "more_than_the_field": "the requests differ from those of stage 3 in more than"
        " the field.",
        "field_without_tools": "where no tools are offered, the request should be that"
        " of stage 3: servers refuse the field without tools.",
        "made_up": "the number {number} was made up: it is in no question and no"
        " earlier result.",
    },
    "together": {
        "title": "All tools of a turn at the same time",
        "task": "Run the calls of one turn at the same time. The results stay in call"
        " order, whichever is there first.",
        "hint": "A ThreadPoolExecutor has a method map. Its results come in the order"
        " of what went in.",
        "tries": "Three calls that work only while the two others run; a first call"
        " that ends last; a turn with failures in it; against stage 3 by the judge.",
        "not_together": "three calls of one turn, each of which works only while the"
        " two others are under way. They were not.",
        "call_order": "the first call of the turn ended last. Its result must be the"
        " first all the same.",
        "failures": "a turn in which some calls fail should come to what it comes to in"
        " stage 3.",
        "not_the_same": "with tools that do not wait for each other, it should be"
        " stage 3.",
    },
    "async_twin": {
        "title": "An async twin that answers a second question",
        "task": "The file is stage 3, async, with a mistake in run_agent: the first"
        " question is answered, the second is not. Mend it. arun_agent stays async.",
        "hint": "The HTTP client keeps its connections open. They belong to the event"
        " loop in which they were made, and asyncio.run makes a new loop for each"
        " question. One loop for the whole process, in a thread of its own, answers"
        " them all: asyncio.run_coroutine_threadsafe.",
        "tries": "Three questions and a conversation in one process, against stage 3"
        " by the judge; two questions at once with arun_agent in one event loop.",
        "not_the_same": "it should do what stage 3 does.",
        "not_async": "two calls of arun_agent in one event loop: the second did not"
        " begin before the first had ended. It should be `async def`, and await the"
        " model.",
    },
    "order": {
        "title": "Two lines in the wrong order, and a server that minds",
        "task": "The file is stage 3 with two lines the other way round. The answer is"
        " often right all the same, but a strict server refuses the request with the"
        " status 400. See it with: python -m exercises ask --strict"
        " '北京今天天气怎么样？' Put the lines right.",
        "hint": "In each request a tool result must stand behind the message that asked"
        " for it. So which of the two must be in the list first, the reply or the"
        " results?",
        "tries": "A strict server, and the judge against stage 3: one tool, two in one"
        " turn, a chain, no tool, a conversation, a budget that ends.",
        "not_the_same": "it should do what stage 3 does.",
        "budget": "the model never stops asking for tools. At the end of the budget"
        " the conversation should be that of stage 3.",
    },
    "window": {
        "title": "A memory for stage 3",
        "task": "Let the model see the newest 3 messages. A call and its results stay"
        " together. The last question, and the last call with its results, are always"
        " there, even where they alone are more than 3. What run_agent returns is the"
        " whole conversation.",
        "hint": "Cut the messages into rounds: a message of its own, or a call with all"
        " its results. Keep the last question's round and the last round. Then add"
        " older rounds, newest first, as long as there is room. The loop goes on with"
        " the whole list; only what is sent becomes shorter.",
        "tries": "The judge compares with stage 4 and its Window(3): a conversation of"
        " three questions, two calls in one turn, a chain of three calls, and a"
        " conversation after it; the returned conversation is whole.",
        "conversation": "in a conversation it should send what stage 4 with Window(3)"
        " sends.",
        "two_calls": "two calls of one turn and their results are 3 messages already."
        " The question must be sent with them all the same.",
        "chain": "in a chain of calls it should send what stage 4 with Window(3)"
        " sends.",
    },
    "dependencies": {
        "title": "Tools that need each other",
        "task": "NEEDS says which tool needs the result of which. A call that stands in"
        " one turn with a call that it needs is a guess: do not run it. Tell the model"
        " which result it must wait for, and go on. All other calls of the turn run.",
        "hint": "In run_tools you have all calls of the turn. For each, see which of"
        " the names that it needs are among them, before or after it. Every call must"
        " get a tool message, also the one that does not run.",
        "tries": "A guess behind the price and in front of it, the same calculation one"
        " turn later, calculations alone, calls that do not need each other, on a"
        " strict server; against stage 4 by the judge.",
        "guess_ran": "the model asked for get_stock_price and calculate in one turn, in"
        " this order: {calls}. calculate has run with a number that was made up.",
        "not_told": "calculate did not run, and the tool message does not name"
        " get_stock_price, for which it must wait.",
        "others_refused": "{tool} needs nothing of this turn and should have run.",
        "later_refused": "in a later turn, with the price known, calculate should run.",
        "not_the_same": "where no call needs another of its turn, it should do what"
        " stage 4 does.",
    },
    "label": {
        "title": "A label of the model's own",
        "task": "Some models write Answer: where the format says Final Answer:."
        " Understand it at the start of a line, in capital or small letters. Where the"
        " format is kept, nothing changes.",
        "hint": "Put the label right before the text is parsed, with a regular"
        " expression that matches at the start of a line only (re.MULTILINE). And"
        " leave a reply alone that has a Final Answer: already.",
        "tries": "Answer: and answer: at the start of a line; Final Answer:, also with"
        " a line Answer: in it; the word in a thought before an action; the demo"
        " questions against stage 5 by the judge.",
        "not_understood": "the model wrote {written!r}. The answer should be {wanted!r}"
        " after {turns} model calls; it is {answer!r} after {count}.",
        "not_the_same": "the model kept the format. The agent should do what stage 5"
        " does.",
    },
    "plant": {
        "title": "A difference that no answer shows",
        "task": "The file is stage 3. Change it so that all questions get the same"
        " answer and all requests stay the same to the letter, and yet the judge finds"
        " a difference, of the cause `control`. In front of tools that change"
        " something, such a difference matters.",
        "hint": "What does the judge see besides the wire? The tools: whether they ran,"
        " and in which order. Two cities in one turn are two calls. Whichever runs"
        " first, the results go back in call order.",
        "tries": "Two cities, with the judge against stage 3: every request and the"
        " answer are equal, the cause is control; a single call, a chain and a question"
        " without tools are equivalent.",
        "no_difference": "the judge finds no difference from stage 3.",
        "wrong_cause": "the judge finds a difference, but its cause is {cause}.",
        "requests_differ": "the requests are no longer those of stage 3.",
        "answers_differ": "the answer is no longer that of stage 3.",
        "not_the_same": "this question asks for no two tools in one turn. Here it"
        " should be equivalent.",
    },
    "survive": {
        "title": "A tool that raises must not end the run",
        "task": "The file is create_react_agent as it comes. A tool that raises ends"
        " its run, and what the other tools found is lost. Let the run go on: the model"
        " reads what went wrong.",
        "hint": "create_react_agent takes a ToolNode in the place of a list of tools,"
        " and a ToolNode has handle_tool_errors. Whatever the tool message says, the"
        " words of the exception must be in it.",
        "tries": "One of two tools of a turn raises: the run goes on, the model reads"
        " the words of the exception and no traceback, the other result is kept; an"
        " exception of another type; where nothing fails it is what it was.",
        "died": "a tool raised an exception, and the run ended with it: {error}",
        "not_told": "the model does not read what went wrong: {text!r} should say"
        " {words!r}.",
        "traceback": "the model reads a traceback. It needs the words of the exception"
        " alone.",
        "sibling_lost": "the other tool of the turn worked, and its result is lost.",
        "not_the_same": "where no tool fails, it should be what it was.",
    },
}
