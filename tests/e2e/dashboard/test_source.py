"""Rules that the dashboard's source keeps."""

import re

import pytest

from tools import dashboard

SOURCES = {
    path.relative_to(dashboard.SOURCE).as_posix(): path.read_text()
    for path in dashboard.sources()
    if path.suffix in {".ts", ".tsx", ".css", ".html"} and ".test." not in path.name
}
WRITE_STYLES = {"AppShell", "Grid", "SimpleGrid", "Flex", "Marquee", "ColorSchemeScript", "MantineStyle"}
"""Components that write style elements, which the page's policy forbids."""
HAVE_NO_STYLES = {
    "NativeSelect",
    "MantineProvider",
    "Portal",
    "Transition",
    "FocusTrap",
    "Collapse",
    "Box",
    "Select",
    "TextInput",
    "Textarea",
}
MANTINE = re.compile(r'import \{([^}]*)\} from "@mantine/core"')


def used():
    """What is imported from Mantine: components only, no hooks and types."""
    names = [name.strip() for text in SOURCES.values() for found in MANTINE.findall(text) for name in found.split(",")]
    return {name for name in names if re.fullmatch(r"[A-Z]\w+", name)}


def test_the_source_is_seen():
    assert len(SOURCES) > 20
    assert {"Button", "Modal"} <= used()


@pytest.mark.parametrize(
    "what, pattern",
    [
        ("markup from text", r"dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write"),
        ("code from text", r"\beval\(|new Function\("),
        ("a foreign host", r"https?://(?!www\.w3\.org/2000/svg|127\.0\.0\.1)"),
        ("a key that outlives its tab", r"localStorage\.|document\.cookie"),
        ("a link to whatever a job says", r"href=\{(?!`?#)"),
    ],
)
def test_there_is_no(what, pattern):
    """T27: what jobs say is text and stays text; nothing comes from elsewhere."""
    assert [name for name, text in SOURCES.items() if re.search(pattern, text)] == [], what


def test_no_component_writes_a_style_element():
    assert used() & WRITE_STYLES == set()
    provider = SOURCES["src/main.tsx"]
    assert "withCssVariables={false}" in provider
    assert "withGlobalClasses={false}" in provider
    theme = SOURCES["src/theme.ts"]
    for each in used() & {"Modal", "Drawer"}:
        assert re.search(rf"{each}: .*lockScroll: false", theme)


def test_the_styles_of_every_component_in_use_are_there():
    there = set(re.findall(r"@mantine/core/styles/(\w+)\.css", SOURCES["src/styles/mantine.css"]))
    assert used() - there - HAVE_NO_STYLES == set()


def test_the_colours_of_the_theme_stand_in_its_stylesheet():
    """Mantine does not write them, so somebody must."""
    theme, style = SOURCES["src/theme.ts"], SOURCES["src/styles/theme.css"]
    shades = re.findall(r'"(#[0-9a-f]{6})"', theme)
    assert len(shades) == 10
    for number, shade in enumerate(shades):
        assert f"--mantine-color-tide-{number}: {shade};" in style
        assert f"--mantine-primary-color-{number}: {shade};" in style
