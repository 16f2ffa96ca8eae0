"""Evaluator, monitor and a naive model of the temporal semantics answer the same, on tens of thousands of cases.

A case is a formula and a history, compared at every moment of the history, or a policy and a situation. Cases come in
batches, every formula of a batch with every history of it: decoding takes longer than deciding. Failures are reduced by
hypothesis. LEANGUARD_DIFFERENTIAL_SEED replays a fresh seed, LEANGUARD_DIFFERENTIAL_CASES sets the number of cases.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from math import ceil

import naive
import pytest
import runs
import strategies
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st
from oracle import Oracle
from strategies import Json

SIDE = 20  # formulas and histories in a batch
POLICY_SHARE = 10  # one decision for so many formula cases
pytestmark = pytest.mark.timeout(600)


def batches_of(item: st.SearchStrategy[Json]) -> st.SearchStrategy[list[Json]]:
    """One side of a batch. Small ones are rare; a failure is reduced to one."""
    return strategies.sized_lists(item, (1, *[SIDE] * 15))


def compare(
    seed: int,
    cases: int,
    rows: st.SearchStrategy[Json],
    columns: st.SearchStrategy[Json],
    ask: Callable[[list[Json], list[Json]], list[list[str]]],
    expect: Callable[[Json, Json], str],
) -> Counter[str]:
    """Compare Lean's answers with the model's on at least so many different cases; counts the answers."""
    answers: dict[tuple[int, int], str] = {}

    def batch(of_rows: list[Json], of_columns: list[Json]) -> None:
        got = ask(of_rows, of_columns)
        for row, answers_of_row in zip(of_rows, got, strict=True):
            for column, answer in zip(of_columns, answers_of_row, strict=True):
                wanted = expect(row, column)
                if answer != wanted:
                    case = f"{json.dumps(row)}\non\n{json.dumps(column)}"
                    raise AssertionError(f"Lean says {answer}, the model {wanted}:\n{case}")
                answers[hash(repr(row)), hash(repr(column))] = answer

    # Some batches are small, and some cases come twice: run on until there are enough.
    while len(answers) < cases:
        run = given(batches_of(rows), batches_of(columns))(batch)
        run = settings(
            max_examples=1 + ceil((cases - len(answers)) / SIDE**2),  # the first one is always the smallest
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink) if runs.SHRINK else (Phase.generate,),
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        )(run)
        with_seed(seed)(run)()
        seed += 1 << 32  # further than any fresh seed
    return Counter(answers.values())


def test_formulas(oracle: Oracle, seed: int) -> None:
    seen = compare(
        seed,
        ceil(runs.CASES / len(runs.SEEDS)),
        strategies.formulas,
        strategies.histories(),
        lambda formulas, histories: oracle.ask(formulas=formulas, histories=histories),
        naive.verdicts,
    )
    runs.compared["formulas on histories"] += sum(seen.values())
    if sum(seen.values()) >= 5_000:  # enough to say that the cases were not all alike
        last = Counter[str]()
        for verdicts, count in seen.items():
            last[verdicts[-1]] += count
        assert min(last[letter] for letter in "TFE") > sum(last.values()) / 12, last


def test_policies(oracle: Oracle, seed: int) -> None:
    seen = compare(
        seed,
        ceil(runs.CASES / POLICY_SHARE / len(runs.SEEDS)),
        strategies.policies(),
        strategies.situations(),
        lambda policies, situations: oracle.ask(policies=policies, situations=situations),
        naive.decide,
    )
    runs.compared["policies in situations"] += sum(seen.values())
    if sum(seen.values()) >= 500:
        assert seen["admit"] > sum(seen.values()) / 50, seen
        assert len(seen) > 40, seen


def test_the_model_is_compared_at_all(oracle: Oracle) -> None:
    """A wrong model is found out: a window that is one too short."""
    formula, history = ["once", 5, ["kind", "a"]], [{"kind": "a", "time": 0}, {"kind": "b", "time": 5}]
    ((answer,),) = oracle.ask(formulas=[formula], histories=[history])
    assert answer == naive.verdicts(formula, history) == "TT"
    assert naive.verdicts(["once", 4, ["kind", "a"]], history) == "TF"
