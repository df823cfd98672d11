"""All that the exercises say to a learner, in one place, so that it can be translated.

For each exercise: its title, its task, a hint, what its checker tries, and the reasons
for which it fails. "any" holds what belongs to all of them.
"""

from __future__ import annotations

from equivalence.language import N_, _


class Said(dict[str, str]):
    """Texts, each in the language of whoever reads it."""

    def __getitem__(self, name: str) -> str:
        return _(super().__getitem__(name))


TEXTS: dict[str, Said] = {
    "any": Said(
        {
            # the command line
            "several": N_("{wanted} is several exercises: {names}"),
            "no_exercise": N_("no exercise is called {wanted!r}: {names}"),
            "no_file": N_("{file} is not there: python -m exercises start {number}"),
            "is_there": N_(
                "{file} is already there and is not overwritten: move it"
                " away, or give another name: --file NAME.py"
            ),
            "no_folder": N_("{file} cannot be written: {reason}"),
            "starts": N_("Exercise {number}, where it starts: {title}"),
            "started": N_("{file} is where exercise {number} starts."),
            "then": N_("Check it with: python -m exercises check {number}{file}"),
            "pass": N_("PASS  {number} {name}: {tries}"),
            "fail": N_("FAIL  {number} {name}: {reason}"),
            "more": N_("A hint: python -m exercises hint {number}"),
            "too_long": N_(
                "the check has not ended after {seconds} seconds: {file}"
                " waits for something that never comes, or never stops."
            ),
            # what can be wrong with any file
            "cannot_import": N_("{file} cannot be imported: {where}{error}"),
            "no_attribute": N_("{file} has no {name}."),
            "raised": N_("run_agent failed: {where}{error}"),
            "no_model_call": N_(
                "run_agent called no model. Does it pass its settings"
                " on, to chat_model(settings) or openai_model(settings)?"
            ),
            "refused": N_(
                "a strict server refused a request, because the conversation"
                " in it breaks a rule. Its words stand at the end."
            ),
            "never_stops": N_(
                "this agent sends one request after another and never stops"
            ),
            "not_completed": N_("the run came to no answer; its status is {status}."),
            "length": N_(
                "the conversation that run_agent returned has {wanted[1]} messages"
                " and should have {wanted[0]}."
            ),
            # what was seen
            "asked": N_("Asked: {question}"),
            "not_run": N_("(not run)"),
            "judge": N_(
                "The judge, against {baseline}: cause {cause}, model call {number},"
                " {path}"
            ),
        }
    ),
    "first_tool": Said(
        {
            "title": N_("Give the agent of twenty lines a tool"),
            "task": N_(
                "A model reads pieces of words and does not see their letters."
                " Write a tool count_letters(word, letter), which tells how often"
                " a letter stands in a word, and offer it to the model. Capital"
                " and small letters count alike."
            ),
            "hint": N_(
                "A tool is a function. Its name, its type hints and its docstring"
                " are all that the model gets to read: without hints the model"
                " does not know that the arguments are texts. A tool message"
                " holds text, so return a text. And the agent offers what stands"
                " in TOOLS."
            ),
            "tries": N_(
                "The new tool is offered with two texts as parameters; several"
                " words, capital letters and Chinese are counted; the other"
                " tools are still there."
            ),
            "not_offered": N_(
                "the model is not offered a tool count_letters: it must stand in TOOLS."
            ),
            "tool_lost": N_("{name} is no longer in TOOLS."),
            "parameters": N_(
                "the model reads of the parameters {parameters}; it should"
                " read word and letter, each of the type string, both"
                " required."
            ),
            "wrong_count": N_(
                "count_letters({word!r}, {letter!r}) should tell {wanted}."
            ),
            "not_the_same": N_(
                "with the old tools alone the agent is not what it was."
            ),
        }
    ),
    "ask_a_person": Said(
        {
            "title": N_("Ask a person before a critical tool runs"),
            "task": N_(
                "Before get_stock_price runs, ask the person at the keyboard with"
                " input(). Show the name of the tool and its arguments. Only y lets"
                " it run. If it does not run, the model is told so, and the run goes"
                " on."
            ),
            "hint": N_(
                "All calls pass the one function that is wrapped around them. There,"
                " before run_tool, is the place to ask. What you return instead of a"
                " result is a ToolMessage like any other, with the status error."
            ),
            "tries": N_(
                "The person says n, y, presses Enter alone, and is asked for"
                " each of two calls of one turn; weather needs no approval; with"
                " y it is the agent it was."
            ),
            "nobody_asked": N_("get_stock_price has run, and nobody was asked."),
            "ran_although_no": N_(
                "the person answered {answer!r}, and get_stock_price"
                " has run all the same. Only y lets it run."
            ),
            "yes_is_not_enough": N_(
                "the person answered y, and get_stock_price has not run."
            ),
            "not_told": N_(
                "get_stock_price has not run, but no tool message tells the model."
            ),
            "hidden_call": N_(
                "the person was asked {prompt!r}. This question does not show"
                " which call it is: show the name of the tool and its arguments."
            ),
            "asked_too_much": N_(
                "the person was asked before get_weather, too. Only"
                " get_stock_price is critical."
            ),
            "once_for_two": N_(
                "two calls of get_stock_price in one turn, and the person"
                " was asked {times} times. Each call needs an approval of"
                " its own."
            ),
            "wrong_call": N_(
                "the person allowed 腾讯 and not 苹果; what has run is {ran}."
            ),
            "not_the_same": N_("where the person says y, it is not the agent it was."),
        }
    ),
    "return_direct": Said(
        {
            "title": N_("An answer that needs no model"),
            "task": N_(
                "In create_react_agent a tool may have return_direct: once it has"
                " run, the run is over, and its result is the answer. Build that"
                " into the graph of stage 2, for the tools in RETURN_DIRECT."
            ),
            "hint": N_(
                "Today one edge leads from the tools to the model. Make it a"
                " conditional edge. A turn may have asked for several tools, so look"
                " at all results of the last turn, and at no earlier ones."
            ),
            "tries": N_(
                "The judge compares with create_react_agent: one call, two calls of"
                " one turn in both orders, a call that fails, a tool that is not in"
                " the list, and a second question of a conversation."
            ),
            "one_call": N_("after get_stock_price has run, the run should be over."),
            "other_tool": N_(
                "get_weather is not in RETURN_DIRECT: after it the model"
                " should be asked again."
            ),
            "first_of_two": N_(
                "get_stock_price was the first of two calls of one turn."
                " That it was not the last one does not matter: the run"
                " should be over."
            ),
            "last_of_two": N_(
                "get_stock_price was the second of two calls of one turn. The"
                " run should be over."
            ),
            "failed_call": N_(
                "get_stock_price was called and has failed. The framework"
                " ends the run all the same."
            ),
            "later_turn": N_(
                "get_stock_price was called in the second turn of the"
                " question. The run should be over then, and not before."
            ),
            "conversation": N_(
                "an earlier question had called get_stock_price; this one"
                " did not. What counts are the results of the last turn."
            ),
        }
    ),
    "serial": Said(
        {
            "title": N_("One tool at a time, and no invented 300"),
            "task": N_(
                "Make the model ask for one tool at a time, by one more field in"
                " each request. At temperature 0.7 the model of chapter 3 asked"
                " for the price and for the product in one turn, and made up the"
                " price: 300. Asked for one tool at a time, it cannot."
            ),
            "hint": N_(
                "The field is parallel_tool_calls, of OpenAI's chat completions."
                " What bind_tools does not know it passes on as a field of the"
                " request. A server refuses the field where no tools are offered."
            ),
            "tries": N_(
                "One call a turn for two cities; the field is the only difference"
                " from stage 3, in every request; without tools there is none; at"
                " seed 7 and temperature 0.7 no number is made up."
            ),
            "several_calls": N_(
                "in turn {turn} the model asked for several tools at once."
            ),
            "no_field": N_(
                "model call {number} has no field parallel_tool_calls that is false."
            ),
            "more_than_the_field": N_(
                "the requests differ from those of stage 3 in more than the field."
            ),
            "field_without_tools": N_(
                "where no tools are offered, the request should be"
                " that of stage 3: servers refuse the field"
                " without tools."
            ),
            "made_up": N_(
                "the number {number} was made up: it is in no question and no"
                " earlier result."
            ),
        }
    ),
    "together": Said(
        {
            "title": N_("All tools of a turn at the same time"),
            "task": N_(
                "Run the calls of one turn at the same time. The results stay in"
                " call order, whichever is there first."
            ),
            "hint": N_(
                "A ThreadPoolExecutor has a method map. Its results come in the"
                " order of what went in."
            ),
            "tries": N_(
                "Three calls that work only while the two others run; a first call"
                " that ends last; a turn with failures in it; against stage 3 by the"
                " judge."
            ),
            "not_together": N_(
                "three calls of one turn, each of which works only while the"
                " two others are under way. They were not."
            ),
            "call_order": N_(
                "the first call of the turn ended last. Its result must be the"
                " first all the same."
            ),
            "failures": N_(
                "a turn in which some calls fail should come to what it comes"
                " to in stage 3."
            ),
            "not_the_same": N_(
                "with tools that do not wait for each other, it should be stage 3."
            ),
        }
    ),
    "async_twin": Said(
        {
            "title": N_("An async twin that answers a second question"),
            "task": N_(
                "The file is stage 3, async, with a mistake in run_agent: the first"
                " question is answered, the second is not. Mend it. arun_agent stays"
                " async."
            ),
            "hint": N_(
                "The HTTP client keeps its connections open. They belong to the"
                " event loop in which they were made, and asyncio.run makes a new"
                " loop for each question. One loop for the whole process, in a"
                " thread of its own, answers them all:"
                " asyncio.run_coroutine_threadsafe."
            ),
            "tries": N_(
                "Three questions and a conversation in one process, against stage 3"
                " by the judge; two questions at once with arun_agent in one event"
                " loop."
            ),
            "not_the_same": N_("it should do what stage 3 does."),
            "not_async": N_(
                "two calls of arun_agent in one event loop: the second did not begin"
                " before the first had ended. It should be `async def`, and await"
                " the model."
            ),
        }
    ),
    "order": Said(
        {
            "title": N_("Two lines in the wrong order, and a server that minds"),
            "task": N_(
                "The file is stage 3 with two lines the other way round. The"
                " answer is often right all the same, but a strict server refuses"
                " the request with the status 400. See it with: python -m"
                " exercises ask --strict '北京今天天气怎么样？' Put the lines right."
            ),
            "hint": N_(
                "In each request a tool result must stand behind the message that"
                " asked for it. So which of the two must be in the list first,"
                " the reply or the results?"
            ),
            "tries": N_(
                "A strict server, and the judge against stage 3: one tool, two"
                " in one turn, a chain, no tool, a conversation, a budget that"
                " ends."
            ),
            "not_the_same": N_("it should do what stage 3 does."),
            "budget": N_(
                "the model never stops asking for tools. At the end of the budget"
                " the conversation should be that of stage 3."
            ),
        }
    ),
    "window": Said(
        {
            "title": N_("A memory for stage 3"),
            "task": N_(
                "Let the model see the newest 3 messages. A call and its results"
                " stay together. The last question, and the last call with its"
                " results, are always there, even where they alone are more than"
                " 3. What run_agent returns is the whole conversation."
            ),
            "hint": N_(
                "Cut the messages into rounds: a message of its own, or a call"
                " with all its results. Keep the last question's round and the"
                " last round. Then add older rounds, newest first, as long as"
                " there is room. The loop goes on with the whole list; only what"
                " is sent becomes shorter."
            ),
            "tries": N_(
                "The judge compares with stage 4 and its Window(3): a"
                " conversation of three questions, two calls in one turn, a"
                " chain of three calls, and a conversation after it; the"
                " returned conversation is whole."
            ),
            "conversation": N_(
                "in a conversation it should send what stage 4 with Window(3) sends."
            ),
            "two_calls": N_(
                "two calls of one turn and their results are 3 messages"
                " already. The question must be sent with them all the same."
            ),
            "chain": N_(
                "in a chain of calls it should send what stage 4 with Window(3) sends."
            ),
        }
    ),
    "dependencies": Said(
        {
            "title": N_("Tools that need each other"),
            "task": N_(
                "NEEDS says which tool needs the result of which. A call that"
                " stands in one turn with a call that it needs is a guess: do not"
                " run it. Tell the model which result it must wait for, and go"
                " on. All other calls of the turn run."
            ),
            "hint": N_(
                "In run_tools you have all calls of the turn. For each, see which of"
                " the names that it needs are among them, before or after it. Every"
                " call must get a tool message, also the one that does not run."
            ),
            "tries": N_(
                "A guess behind the price and in front of it, the same"
                " calculation one turn later, calculations alone, calls that do"
                " not need each other, on a strict server; against stage 4 by"
                " the judge."
            ),
            "guess_ran": N_(
                "the model asked for get_stock_price and calculate in one"
                " turn, in this order: {calls}. calculate has run with a"
                " number that was made up."
            ),
            "not_told": N_(
                "calculate did not run, and the tool message does not name"
                " get_stock_price, for which it must wait."
            ),
            "others_refused": N_(
                "{tool} needs nothing of this turn and should have run."
            ),
            "later_refused": N_(
                "in a later turn, with the price known, calculate should run."
            ),
            "not_the_same": N_(
                "where no call needs another of its turn, it should do what"
                " stage 4 does."
            ),
        }
    ),
    "label": Said(
        {
            "title": N_("A label of the model's own"),
            "task": N_(
                "Some models write Answer: where the format says Final Answer:."
                " Understand it at the start of a line, in capital or small letters."
                " Where the format is kept, nothing changes."
            ),
            "hint": N_(
                "Put the label right before the text is parsed, with a regular"
                " expression that matches at the start of a line only"
                " (re.MULTILINE). And leave a reply alone that has a Final Answer:"
                " already."
            ),
            "tries": N_(
                "Answer: and answer: at the start of a line; Final Answer:, also"
                " with a line Answer: in it; the word in a thought before an"
                " action; the demo questions against stage 5 by the judge."
            ),
            "not_understood": N_(
                "the model wrote {written!r}. The answer should be"
                " {wanted!r} after {turns} model calls; it is"
                " {answer!r} after {count}."
            ),
            "not_the_same": N_(
                "the model kept the format. The agent should do what stage 5 does."
            ),
        }
    ),
    "plant": Said(
        {
            "title": N_("A difference that no answer shows"),
            "task": N_(
                "The file is stage 3. Change it so that all questions get the same"
                " answer and all requests stay the same to the letter, and yet the"
                " judge finds a difference, of the cause `control`. In front of"
                " tools that change something, such a difference matters."
            ),
            "hint": N_(
                "What does the judge see besides the wire? The tools: whether"
                " they ran, and in which order. Two cities in one turn are two"
                " calls. Whichever runs first, the results go back in call order."
            ),
            "tries": N_(
                "Two cities, with the judge against stage 3: every request and the"
                " answer are equal, the cause is control; a single call, a chain and"
                " a question without tools are equivalent."
            ),
            "no_difference": N_("the judge finds no difference from stage 3."),
            "wrong_cause": N_(
                "the judge finds a difference, but its cause is {cause}."
            ),
            "requests_differ": N_("the requests are no longer those of stage 3."),
            "answers_differ": N_("the answer is no longer that of stage 3."),
            "not_the_same": N_(
                "this question asks for no two tools in one turn. Here it"
                " should be equivalent."
            ),
        }
    ),
    "survive": Said(
        {
            "title": N_("A tool that raises must not end the run"),
            "task": N_(
                "The file is create_react_agent as it comes. A tool that raises ends"
                " its run, and what the other tools found is lost. Let the run go"
                " on: the model reads what went wrong."
            ),
            "hint": N_(
                "create_react_agent takes a ToolNode in the place of a list of"
                " tools, and a ToolNode has handle_tool_errors. Whatever the tool"
                " message says, the words of the exception must be in it."
            ),
            "tries": N_(
                "One of two tools of a turn raises: the run goes on, the model"
                " reads the words of the exception and no traceback, the other"
                " result is kept; an exception of another type; where nothing"
                " fails it is what it was."
            ),
            "died": N_(
                "a tool raised an exception, and the run ended with it: {error}"
            ),
            "not_told": N_(
                "the model does not read what went wrong: {text!r} should say"
                " {words!r}."
            ),
            "traceback": N_(
                "the model reads a traceback. It needs the words of the"
                " exception alone."
            ),
            "sibling_lost": N_(
                "the other tool of the turn worked, and its result is lost."
            ),
            "not_the_same": N_("where no tool fails, it should be what it was."),
        }
    ),
}
