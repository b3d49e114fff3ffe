"""axe-core in a page of the browser: what hinders people with disabilities, in light and dark."""

from pathlib import Path

from playwright.sync_api import Page

_AXE = Path(__file__).parents[2] / "data" / "axe.min.js"

_RUN = """async (rules) => {
  const { violations } = await axe.run({ resultTypes: ["violations"], ...(rules && { runOnly: rules }) });
  return violations.map(({ id, impact, nodes }) => [impact, id, nodes.map((each) => each.html).slice(0, 3)]);
}"""

_TO_BE_FIXED = ("serious", "critical")

_OF_COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules that can have other results in the dark colours."""


def load_axe(page: Page) -> None:
    """Make axe known to the page; scripts of tests are not the page's, so its policy stays in force."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(f"() => {{ {_AXE.read_text()} }}")


def problems_of(page: Page) -> list[tuple[str, str, str, list[str]]]:
    """Return the scheme, impact, rule and elements of each serious problem of the present view."""
    load_axe(page)
    found = []
    for scheme, rules in (("light", None), ("dark", _OF_COLOURS)):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        found += [(scheme, *each) for each in page.evaluate(_RUN, rules) if each[0] in _TO_BE_FIXED]
    return found
