"""One question: its columns, its turns and how they ended."""

from __future__ import annotations

from dataclasses import dataclass, replace

from equivalence.judge.compare import Judge, Verdict
from equivalence.runs.hints import hint
from equivalence.runs.implementation import LADDER, STOCK
from equivalence.runs.record import STATUSES, Run
from equivalence.runs.steps import first_choice, text_of, tool_calls
from equivalence.show.page.calls import calls_of
from equivalence.show.page.cells import Cell, End, facts, panes, same
from equivalence.show.page.changes import added, beside
from equivalence.show.page.partings import Parting, parting_of
from equivalence.show.page.reading import Group
from equivalence.show.page.source import Source, source
from equivalence.show.page.tool_lists import ToolLists, tools_of


@dataclass
class Column:
    """One implementation in the table of one question."""

    name: str
    run: Run
    about: str
    verdict: Verdict | None
    """None for the measure."""
    source: Source | None
    parting: Parting | None = None
    anchor: str = ""
    """Where the run parts from the measure, or else where its column begins."""


class Question:
    """One question: its columns, its turns and how they ended."""

    def __init__(
        self, number: int, group: Group, tool_lists: ToolLists, judge: Judge
    ) -> None:
        self.number = number
        names, runs = list(group.runs), list(group.runs.values())
        self.measure, self.text = names[0], runs[0].question
        self.history, self.repeat = runs[0].history, runs[0].repeat
        self.columns: list[Column] = []
        labelled = [replace(r, implementation=name) for name, r in group.runs.items()]
        for index, (name, run) in enumerate(group.runs.items()):
            verdict = judge(labelled[0], labelled[index]) if index else None
            column = Column(
                name,
                run,
                _about(name, run.implementation),
                verdict,
                source(run.implementation),
            )
            if verdict and verdict.divergence:
                column.parting = parting_of(
                    index, names[0], name, runs[0], run, verdict, verdict.divergence
                )
            self.columns.append(column)
        self.tool_lists = tool_lists
        count = max(len(run.model_calls) for run in runs)
        self.rows = [
            [self._cell(index, row) for index in range(len(runs))]
            for row in range(1, count + 1)
        ]
        self.ends = [self._end(index) for index in range(len(runs))]
        for index, column in enumerate(self.columns):
            place = f"r{column.parting.right_row}" if column.parting else "head"
            column.anchor = f"q{number}-c{index}-{place}"

    @property
    def equals(self) -> list[Column]:
        """The columns that are equivalent to the measure."""
        return [
            column
            for column in self.columns
            if column.verdict and column.verdict.verdict == "equivalent"
        ]

    @property
    def others(self) -> list[Column]:
        """The columns that are not."""
        return [c for c in self.columns if c.verdict and c not in self.equals]

    def _sides(self, index: int, row: int) -> list[Parting]:
        """The partings that show in this cell: all of them in the measure's column."""
        if index:
            parting = self.columns[index].parting
            return [parting] if parting and parting.right_row == row else []
        places = [column.parting for column in self.columns]
        return [place for place in places if place and place.row == row]

    def _cell(self, index: int, row: int) -> Cell:
        column = self.columns[index]
        run, sides = column.run, self._sides(index, row)
        cell = Cell(index, row)
        if index:
            cell.parting = sides[0] if sides else None
        else:
            cell.partings = sides
        calls = run.model_calls
        stopped = [p for p in sides if p.path == "status"]
        cell.there_mark = stopped[0].path if stopped else ""
        if row > len(calls):
            if stopped or row == len(calls) + 1:
                cell.ended = run.status
            return cell
        exchange = calls[row - 1]
        cell.there = True
        cell.facts, cell.repairs = facts(run, row), list(map(str, exchange.repairs))
        choice = first_choice(exchange.reply)
        said = text_of(choice["message"].get("content")) if choice else ""
        cell.answers = bool(choice) and not tool_calls(exchange.reply)
        cell.said = "" if cell.answers and said == run.answer else said.strip()
        cell.calls = list(calls_of(run, row, self._step_marks(index)))
        cell.panes = list(panes(exchange, sides))
        self.tool_lists.number(tools_of(exchange.request))
        earlier = calls[row - 2] if row > 1 else None
        cell.added = list(added(earlier, exchange, run))
        if index:
            measure = self.columns[0].run
            cell.beside = beside(measure, self.measure, run, row)
            cell.same = (
                not sides
                and row <= len(measure.model_calls)
                and same(measure, run, row)
            )
        if column.source:
            names = ["call_model", "wants_tools"]
            names += ["run_tools"] if cell.calls else []
            cell.source = column.source.parts(names) or column.source.parts(
                ["build_graph"]
            )
        return cell

    def _step_marks(self, index: int) -> dict[int, str]:
        """The paths at which others part from the steps of this run, by step."""
        columns = self.columns[index : index + 1] if index else self.columns
        found = {}
        for place in (column.parting for column in columns):
            step = place.steps[1 if index else 0] if place else None
            if place and step is not None:
                found[step] = place.path
        return found

    def _end(self, index: int) -> End:
        column = self.columns[index]
        run, sides, measure = column.run, self._sides(index, 0), self.columns[0].run
        return End(
            column=index,
            run=run,
            meaning=STATUSES.get(run.status, ""),
            advice=hint(run.error) or "",
            parting=sides[0] if index and sides else None,
            partings=[] if index else sides,
            same=bool(index)
            and not sides
            and (run.status, run.answer, run.error, run.warnings)
            == (measure.status, measure.answer, measure.error, measure.warnings),
            status_mark="status" if any(p.path == "status" for p in sides) else "",
            answer_mark="answer" if any(p.path == "answer" for p in sides) else "",
            source=column.source.parts(["run_agent"]) if column.source else [],
        )


def _about(label: str, name: str) -> str:
    """What is said of an implementation under its label."""
    for implementation in (*LADDER, *STOCK):
        if implementation.name == name:
            return implementation.about
    return "" if name in label else name
