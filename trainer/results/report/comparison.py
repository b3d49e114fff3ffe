"""The page on a model and the champion."""

from trainer.data.pages import page
from trainer.models.metrics import ACCURACY
from trainer.results.comparison.class_names import quoted_list
from trainer.results.comparison.decision import ClassResult, Comparison

_TITLE = "Champion and challenger"
_MAX_ROWS = 200


def render(*, champion: str, is_promoted: bool, reason: str, comparison: Comparison | None) -> str:
    """Return the HTML of the page.

    Args:
        champion: The version in use, for users; empty if there is none.
        is_promoted: Whether the new model is promoted.
        reason: Why, in one sentence.
        comparison: Both models' results; None if they were not compared.
    """
    blocks: list[page.Block] = [page.Text(title="Promoted" if is_promoted else "Not promoted", text=reason)]
    if comparison:
        # The detectable difference is known only for accuracy.
        power = [_power(comparison)] if comparison.scores.metric == ACCURACY else []
        blocks = [_figures(comparison), *blocks, _table(comparison), *power, _classes(comparison)]
    subtitle = (
        f"The challenger (new model) against the champion, {champion}"
        if champion
        else "The new model was not compared with a champion"
    )
    return page.render(title=_TITLE, subtitle=subtitle, blocks=blocks)


def metrics(comparison: Comparison) -> dict[str, float]:
    """Return all figures by name."""
    table, scores = comparison.table, comparison.scores
    fall: dict[str, float] = {}
    if comparison.fall:
        fall = {"champion_recorded_score": comparison.fall.recorded, "num_own_test_images": comparison.fall.num_own}
    name, smallest = scores.metric.replace("-", "_"), table.smallest_difference
    return {
        f"challenger_{name}": scores.challenger,
        f"champion_{name}": scores.champion,
        "challenger_accuracy": table.challenger_accuracy,
        "champion_accuracy": table.champion_accuracy,
        "difference": scores.difference,
        "p_value": scores.p_value,
        **({} if smallest is None else {"smallest_difference": smallest}),
        **fall,
        "num_images": table.num_images,
        "num_left_out": comparison.num_left_out,
        "num_copies": comparison.num_copies,
        "num_unknown_to_champion": comparison.num_unknown,
        "num_both_correct": table.both,
        "num_only_champion_correct": table.only_champion,
        "num_only_challenger_correct": table.only_challenger,
        "num_neither_correct": table.neither,
    }


def _figures(comparison: Comparison) -> page.Block:
    scores = comparison.scores
    test = "McNemar" if scores.metric == ACCURACY else "permutation test"
    unknown = [("left out, class new to the champion", f"{comparison.num_unknown:,}")] if comparison.unknown else []
    return page.KeyFigures(
        figures=[
            ("metric", scores.metric),
            ("new model", f"{scores.challenger:.2%}"),
            ("champion", f"{scores.champion:.2%}"),
            ("difference", f"{scores.difference:+.2%}"),
            (f"p-value ({test})", f"{scores.p_value:.2g}"),
            ("images compared", f"{comparison.table.num_images:,}"),
            ("left out, seen before", f"{comparison.num_left_out:,}"),
            ("left out, copies", f"{comparison.num_copies:,}"),
            *unknown,
        ]
    )


def _table(comparison: Comparison) -> page.Block:
    table = comparison.table
    shown = (
        "Both models saw the originals, because their image sizes differ."
        if comparison.has_originals
        else "Both models saw the images as prepared."
    )
    return page.Table(
        title="Images by result",
        note=f"Test images that neither model has trained or validated on. {shown}",
        columns=["new model ↓ champion →", "correct", "wrong"],
        rows=[["correct", table.both, table.only_challenger], ["wrong", table.only_champion, table.neither]],
    )


def _power(comparison: Comparison) -> page.Block:
    table, smallest = comparison.table, comparison.table.smallest_difference
    title = "Smallest difference that this number of images can show"
    if smallest is None:
        num_discordant = table.only_champion + table.only_challenger
        return page.Text(
            title=title,
            text=f"Too few to tell: only one of the models classifies {num_discordant:,} of {table.num_images:,} images"
            " correctly. No difference of accuracy is found with p < 0.05 in four of five such comparisons.",
        )
    return page.Text(
        title=title,
        text=f"With {table.num_images:,} images, a difference of {smallest:.2%} is found with p < 0.05"
        " in four of five comparisons (exact McNemar test, for models that differ as often as these). A smaller one"
        " usually remains undetected.",
    )


def _classes(comparison: Comparison) -> page.Block:
    ranked = sorted(comparison.classes, key=_change)
    more = f" The {_MAX_ROWS} with the largest losses are listed." if len(ranked) > _MAX_ROWS else ""
    if comparison.unknown:
        more += f" {comparison.num_unknown:,} images were left out, because the champion does not know their classes:"
        more += f" {quoted_list(comparison.unknown)}."
    return page.Table(
        title="Classes",
        note=f"Correct answers per class.{more}",
        columns=["class", "change", "champion", "new model", "images"],
        rows=[
            [each.class_name, _change(each), each.champion, each.challenger, each.num_images]
            for each in ranked[:_MAX_ROWS]
        ],
        states=["bad" if _change(each) < 0 else "" for each in ranked[:_MAX_ROWS]],
    )


def _change(each: ClassResult) -> int:
    return each.challenger - each.champion
