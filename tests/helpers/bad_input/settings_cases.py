"""``saber.yaml``, the environment, and the record of a home."""

from bad_input.bench import Bench, Case, Said, jsonl
from saber_dagster.home import Home
from saber_dagster.sources import read_sources


def settings(content: str | bytes, at: str = "saber.yaml", **environ: str) -> Case:
    """``saber settings`` in a home with this file and environment."""

    def case(bench: Bench) -> Said:
        bench.write("home/saber.yaml", content)
        return bench.saber("settings", at=(at,), environ=environ)

    return case


def builtin_and_files(bench: Bench) -> Said:
    path = bench.write("a.jsonl", jsonl({}))
    said = settings(f"corpus: {{builtin: [champ], files: [path: {path}]}}\n", str(path))(bench)
    assert read_sources(Home(bench.folder / "home").settings.corpus).frame.height == 1
    return said


def founded(bench: Bench) -> Home:
    """A home that a build of the demo has made."""
    home = Home(bench.folder / "home")
    with home.locked():
        home.found()
    return home


def unknown_preset(bench: Bench) -> Said:
    return bench.saber("build", "--preset", "huge", at=("--preset",))


def other_preset(bench: Bench) -> Said:
    home = founded(bench)
    return bench.saber("build", "--preset", "paper", at=(str(home.root),))


def damaged_home(bench: Bench) -> Said:
    (founded(bench).root / "home.json").write_text('{"preset": "de')
    return bench.saber("build", at=("home.json",))


SETTINGS: dict[str, Case] = {
    "settings-unknown-key": settings("quries: {}\n"),
    "settings-unknown-nested-key": settings("queries: {per_domian: 3}\n"),
    "settings-wrong-type": settings("seed: seven\n"),
    "settings-boolean": settings("queries: {per_domain: true}\n"),
    "settings-out-of-range": settings("topics: {threshold: 1.2}\n"),
    "settings-nan": settings("topics: {threshold: .nan}\n"),
    "settings-infinity": settings("thresholds: {c: .inf}\n"),
    "settings-null-section": settings("queries:\n"),
    "settings-list": settings("domains: algebra\n"),
    "settings-bad-slug": settings("domains: [Number Theory]\n"),
    "settings-date": settings("release: 2026-01-01\n"),
    "settings-percentile-of-top": settings(
        "signals: {keep: top_m}\nthresholds: {rule: percentile}\n"
    ),
    "settings-contradiction": settings("thresholds: {topic_floor: 0.1}\n"),
    "settings-builtin-twice": settings("corpus: {builtin: [starter, starter]}\n"),
    "settings-builtin-unknown": settings("corpus: {builtin: [start]}\n"),
    "settings-builtin-and-files": builtin_and_files,
    "settings-several": settings("seed: seven\nquries: {}\n"),
    "settings-syntax": settings("seed: 1\ndomains: [algebra"),
    "settings-tab": settings("queries:\n\tper_domain: 3\n"),
    "settings-key-twice": settings("seed: 1\nseed: 2\n"),
    "settings-no-mapping": settings("- seed\n"),
    "settings-encoding": settings("seed: 1".encode("utf-16")),
    "settings-too-deep": settings("seed: " + "[" * 3000 + "]" * 3000),
    "settings-environment-value": settings("", SABER_SEED="abc"),
    "settings-environment-yaml": settings("", "", SABER_QUERIES__PER_DOMAIN="[3"),
    "settings-environment-name": settings("", "", SABER_SEEED="1"),
    "settings-unknown-preset": settings("preset: huge\n"),
    "settings-unknown-preset-option": unknown_preset,
    "settings-other-preset": other_preset,
    "settings-damaged-home": damaged_home,
}
