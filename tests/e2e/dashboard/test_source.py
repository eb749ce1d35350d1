"""Rules for the dashboard's source."""

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


def used_components():
    """Return the components imported from Mantine, without hooks and types."""
    names = [name.strip() for text in SOURCES.values() for found in MANTINE.findall(text) for name in found.split(",")]
    return {name for name in names if re.fullmatch(r"[A-Z]\w+", name)}


def test_the_scan_finds_the_source():
    assert len(SOURCES) > 20
    assert {"Button", "Modal"} <= used_components()


@pytest.mark.parametrize(
    "feature, pattern",
    [
        ("markup from text", r"dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write"),
        ("code from text", r"\beval\(|new Function\("),
        ("another host", r"https?://(?!www\.w3\.org/2000/svg|127\.0\.0\.1)"),
        ("a key that survives its tab", r"localStorage\.|document\.cookie"),
        ("a link taken from a job", r"href=\{(?!`?#)"),
    ],
)
def test_the_source_does_not_use(feature, pattern):
    """T27: data of jobs is rendered as text, and nothing is loaded from other hosts."""
    assert [name for name, text in SOURCES.items() if re.search(pattern, text)] == [], feature


def test_no_component_writes_a_style_element():
    assert used_components() & WRITE_STYLES == set()
    provider = SOURCES["src/main.tsx"]
    assert "withCssVariables={false}" in provider
    assert "withGlobalClasses={false}" in provider
    theme = SOURCES["src/theme.ts"]
    for component in used_components() & {"Modal", "Drawer"}:
        assert re.search(rf"{component}: .*lockScroll: false", theme)


def test_every_component_in_use_has_its_styles():
    imported = set(re.findall(r"@mantine/core/styles/(\w+)\.css", SOURCES["src/styles/mantine.css"]))
    assert used_components() - imported - HAVE_NO_STYLES == set()


def test_the_stylesheet_has_the_colours_of_the_theme():
    """Mantine does not write them as variables here, because the page's policy forbids style elements."""
    theme, style = SOURCES["src/theme.ts"], SOURCES["src/styles/theme.css"]
    shades = re.findall(r'"(#[0-9a-f]{6})"', theme)
    assert len(shades) == 10
    for number, shade in enumerate(shades):
        assert f"--mantine-color-tide-{number}: {shade};" in style
        assert f"--mantine-primary-color-{number}: {shade};" in style
