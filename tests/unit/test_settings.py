import pytest
import yaml

from saber_dagster.settings import Settings
from saber_dagster.settings_files import (
    PRESETS,
    SettingsError,
    load_judges,
    load_retrievers,
    load_settings,
    preset_values,
    settings_from,
)


@pytest.fixture
def load(tmp_path):
    def of(text="", **environ):
        path = tmp_path / "saber.yaml"
        path.write_text(text, encoding="utf-8")
        return load_settings(path, environ)

    return of


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("topics.threshold", 0.85),
        ("summaries.max_words", 30),
        ("signals.epsilon", 1e-12),
        ("thresholds.rule", "percentile"),
        ("thresholds.queries_required", 150),
        ("candidates.per_group", 50),
        ("queries.per_domain", 200),
        ("queries.require_all_domains", True),
        ("tournament.rounds", 20),
        ("tournament.both_orders", False),
        ("evaluation.cutoff", 10),
        ("evaluation.bootstrap_samples", 1000),
        ("evaluation.settings", ["statement-full", "full-full", "statement-statement"]),
        (
            "domains",
            ["algebra", "geometry", "number_theory", "combinatorics", "calculus_analysis"],
        ),
    ],
)
def test_the_paper_preset_has_the_constants_of_the_paper(load, key, value):
    assert load("preset: paper").value_of(key) == value


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_load_and_name_themselves(load, preset):
    settings = load(f"preset: {preset}")
    assert settings.preset == preset
    assert set(preset_values(preset)) <= set(Settings.model_fields)
    assert settings.topics.threshold == 0.85
    partitions = settings.partitions
    assert len(settings.domains) * partitions.query_shards < 100
    assert partitions.corpus_shards < 100


def test_a_missing_or_empty_file_is_the_demo(tmp_path, load):
    missing = load_settings(tmp_path / "nothing.yaml", {})
    assert missing == load("") == load("# a comment\n") == load("preset: demo")
    assert missing.queries.per_domain == 5


def test_the_file_overrides_its_preset_key_by_key(load):
    settings = load("preset: paper\nqueries: {per_domain: 3}\ndomains: [algebra]\n")
    assert settings.queries.per_domain == 3
    assert settings.queries.require_all_domains, "the preset's other keys stay"
    assert settings.domains == ("algebra",)


def test_the_environment_overrides_both(load):
    settings = load(
        "queries: {per_domain: 3}",
        SABER_QUERIES__PER_DOMAIN="4",
        SABER_SIGNALS__EPSILON="1e-9",
        SABER_ANNOTATOR__OPTIONS__BASE_URL="http://localhost:8000/v1",
        SABER_THRESHOLDS__C_STEPS="[5, 7.5]",
        SABER_HOME="/elsewhere",
        OTHER__KEY="1",
    )
    assert settings.queries.per_domain == 4
    assert settings.signals.epsilon == 1e-9
    assert settings.annotator.options == {"base_url": "http://localhost:8000/v1"}
    assert settings.thresholds.c_steps == (5.0, 7.5)


def test_the_environment_is_named_when_it_is_wrong(load):
    with pytest.raises(SettingsError, match=r"saber.yaml with SABER_QUERIES__PER_DOMAIN: queries"):
        load(SABER_QUERIES__PER_DOMAIN="none")
    with pytest.raises(SettingsError, match="did you mean 'per_domain'"):
        load(SABER_QUERIES__PER_DOMAINS="3")
    with pytest.raises(SettingsError, match="environment variable SABER_QUERIES__PER_DOMAIN: not"):
        load(SABER_QUERIES__PER_DOMAIN="[3")


def test_the_environment_sets_top_level_keys(load):
    settings = load(
        "seed: 3\nrelease: r2",
        SABER_SEED="4",
        SABER_RELEASE="r3",
        SABER_DOMAINS="[algebra]",
        SABER_QUERIES="{per_domain: 6}",
    )
    assert (settings.seed, settings.release, settings.domains) == (4, "r3", ("algebra",))
    assert settings.queries.per_domain == 6
    assert settings.queries.require_all_domains is False


def test_the_environment_decides_which_preset_is_merged(load):
    paper = load("preset: demo\nqueries: {per_domain: 3}", SABER_PRESET="paper")
    assert paper.preset == "paper"
    assert paper.candidates.per_group == 50
    assert paper.queries.per_domain == 3


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("SABER_SEEDS", "SABER_SEED"),
        ("SABER_RELESE", "SABER_RELEASE"),
        ("SABER_DOMAIN", "SABER_DOMAINS"),
        ("SABER_QUERIES_PER_DOMAIN", "SABER_QUERIES__PER_DOMAIN"),
    ],
)
def test_a_misspelt_variable_is_an_error(load, name, meant):
    with pytest.raises(SettingsError, match=rf"{name} is unknown; did you mean {meant}\?"):
        load(**{name: "3"})


def test_variables_of_others_are_ignored(load):
    others = ("SABER_HOME", "SABER_TEST_DATA", "SABER_REQUIRE_TEST_DATA", "SABER_TOOTH", "SEED")
    assert load(**dict.fromkeys(others, "x")) == load()


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [("seed: 1\nseed: 2\n", 2, "seed"), ("a: 1\nqueries:\n  x: 1\n  x: 1\n", 4, "x")],
)
def test_a_key_that_is_given_twice(load, text, line, key):
    with pytest.raises(
        SettingsError, match=rf'saber.yaml, line {line}: key "{key}" is given twice'
    ):
        load(text)


@pytest.mark.parametrize("load_registry", [load_judges, load_retrievers])
def test_oracle_is_reserved(tmp_path, load_registry):
    path = tmp_path / "registry.yaml"
    kind = "judges" if load_registry is load_judges else "retrievers"
    rest = "" if kind == "judges" else ", retriever: bm25"
    path.write_text(f"{kind}: [{{slug: oracle{rest}}}]")
    with pytest.raises(SettingsError, match=rf"{kind}.0.slug: .*'oracle'"):
        load_registry(path)


def test_a_registry_without_a_judge(tmp_path):
    path = tmp_path / "judges.yaml"
    path.write_text("judges: []")
    with pytest.raises(SettingsError, match=r"judges\.yaml lists no judge"):
        load_judges(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("quries: {}", "unknown key 'quries'; did you mean 'queries'"),
        (
            "queries: {per_domian: 3}",
            r"unknown key 'queries.per_domian'; did you mean 'per_domain'",
        ),
        (
            "corpus: {files: [{path: a.jsonl, soruce: x}]}",
            r"unknown key 'corpus.files.0.soruce'; did you mean 'source'",
        ),
        (
            "corpus: {queries: {path: a.jsonl, maping: {}}}",
            r"unknown key 'corpus.queries.maping'; did you mean 'mapping'",
        ),
        ("topics: {zzz: 1}", r"unknown key 'topics.zzz'; known keys are threshold"),
        ("a1b2: 1\nqueries: {per_domain: x}", "per_domain: .*; unknown key 'a1b2'"),
        ("1: x", "1: "),
    ],
)
def test_unknown_keys_name_the_nearest_known_one(load, text, message):
    with pytest.raises(SettingsError, match=rf"saber.yaml: .*{message}"):
        load(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("seed: seven", "seed"),
        ("seed: 1.5", "seed"),
        ("preset: huge", "saber.yaml: unknown preset 'huge'; there are demo, paper"),
        ("preset: [demo]", "unknown preset"),
        ("release: R1", "release"),
        ("release: 'r1\n\n  '", "release"),
        ("release: a/b", "release"),
        ("domains: []", "domains"),
        ("domains: [algebra, algebra]", "domains: .*each once"),
        ("domains: [algebra, overall]", "domains: .*none of them 'overall'"),
        ("domains: [Number Theory]", "domains.0"),
        ("queries:", "queries"),
        ("queries: 3", "queries"),
        ("queries: {per_domain: 0}", "queries.per_domain"),
        ("topics: {threshold: 1.2}", "topics.threshold"),
        ("topics: {threshold: .nan}", "topics.threshold"),
        ("signals: {epsilon: 0}", "signals.epsilon"),
        ("thresholds: {c: .inf}", "thresholds.c"),
        ("ratings: {prior_precision: .inf}", "ratings.prior_precision"),
        ("thresholds: {rule: best}", "thresholds.rule"),
        ("evaluation: {settings: [full]}", "evaluation.settings.0"),
        ("evaluation: {settings: []}", "evaluation.settings"),
        ("ledger: {mode: dead}", "ledger.mode"),
        ("corpus: {files: [{source: x}]}", "corpus.files.0.path"),
        ("partitions: {corpus_shards: 100}", "partitions.corpus_shards"),
        ("queries: {per_domain: true}", r"queries.per_domain: must be a number \(found true\)"),
        ("thresholds: {c_steps: [5, true]}", "thresholds.c_steps.1: must be a number"),
        ("thresholds: {c_steps: [5, 0]}", "thresholds.c_steps.1: must be at least 0.001"),
        ("thresholds: {topic: 0.8}", "set thresholds.rule to fixed"),
        ("thresholds: {rule: fixed, topic: 0.8}", "set thresholds.topic and thresholds.summary"),
        (
            "thresholds: {rule: fixed, topic: 0.2, summary: 0.2}",
            "set signals.topic_floor to 0.2 or less",
        ),
        ("seed: seven", r"seed: must be a whole number \(found 'seven'\)"),
        ("queries:", r"queries: must have 'key: value' lines below it \(found nothing\)"),
        ("topics: {threshold: 1.2}", r"must be at most 1 \(found 1.2\)"),
        ("queries: {per_domain: 0}", r"must be at least 1 \(found 0\)"),
        ("release: 2026-01-01", r"must be text; quote it .* \(found 2026-01-01\)"),
        ("corpus: {files: [{source: x}]}", "corpus.files.0.path: is missing$"),
    ],
)
def test_wrong_values_name_their_key(load, text, place):
    with pytest.raises(SettingsError, match=place):
        load(text)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: [1", "not readable as YAML"),
        (b"a: b: c", "not readable as YAML"),
        (b"\xff\xfe\x00", "not readable as YAML"),
        (b"\x00", "not readable as YAML"),
        (b"- a\n- b", "found a list"),
        (b"[]", "found a list"),
        (b"false", "found a bool"),
        (b"just words", "found a str"),
        (b"seed: " + b"[" * 5000, "nested too deeply"),
        (b"seed: !!bool maybe", "a value does not fit its tag"),
        (b"seed: 1\n\ttopics: {}", "line 2; indent with spaces, not tabs"),
        (b"seed: 1\nrelease: \xff", "line 2 is not UTF-8"),
    ],
)
def test_a_file_that_is_no_yaml_mapping(tmp_path, data, message):
    path = tmp_path / "saber.yaml"
    path.write_bytes(data)
    with pytest.raises(SettingsError, match=rf"saber.yaml: .*{message}"):
        load_settings(path, {})


def test_a_folder_in_place_of_the_file(tmp_path):
    with pytest.raises(SettingsError, match="not readable"):
        load_settings(tmp_path, {})


def test_a_byte_order_mark_is_no_fault(tmp_path):
    path = tmp_path / "saber.yaml"
    path.write_bytes(b"\xef\xbb\xbfseed: 3\r\n")
    assert load_settings(path, {}).seed == 3


def test_the_digest_changes_with_the_named_sections_alone():
    base = settings_from({}, "x", {})
    other = settings_from({"topics": {"threshold": 0.5}}, "x", {})
    assert base.digest_of("topics") != other.digest_of("topics")
    assert base.digest_of("topics.threshold") != other.digest_of("topics.threshold")
    rest = [name for name in Settings.model_fields if name != "topics"]
    assert base.digest_of(*rest) == other.digest_of(*rest)
    assert base.digest_of("seed", "domains") == base.digest_of("domains", "seed")
    assert base.digest_of("seed") != base.digest_of("release")


def test_every_section_changes_its_own_digest():
    base = settings_from({}, "x", {})
    for changes in (
        {"seed": 8},
        {"domains": ["algebra"]},
        {"signals": {"epsilon": 1e-9}},
        {"annotator": {"options": {"seed": 1}}},
        {"corpus": {"files": [{"path": "a.jsonl"}]}},
    ):
        (name,) = changes
        assert settings_from(changes, "x", {}).digest_of(name) != base.digest_of(name)


def test_true_and_false_stay_where_they_belong(load):
    settings = load(
        "queries: {require_all_domains: true}\nannotator: {options: {a: true, b: [no]}}"
    )
    assert settings.queries.require_all_domains is True
    assert settings.annotator.options == {"a": True, "b": ["no"]}


def test_a_long_value_is_shortened_in_the_message(load):
    with pytest.raises(SettingsError) as caught:
        load(f"seed: {'x' * 10_000}")
    assert len(str(caught.value)) < 400


def test_settings_do_not_change():
    with pytest.raises(ValueError, match="frozen"):
        settings_from({}, "x", {}).seed = 8


def test_registries_have_defaults(tmp_path):
    assert [judge.slug for judge in load_judges(tmp_path / "judges.yaml")] == ["embedded"]
    assert "bm25" in [entry.slug for entry in load_retrievers(tmp_path / "retrievers.yaml")]


@pytest.mark.parametrize(
    ("load_registry", "name", "entry"),
    [
        (load_judges, "judges", {"slug": "a"}),
        (load_retrievers, "retrievers", {"slug": "a", "retriever": "bm25"}),
    ],
)
def test_registries_name_what_is_wrong(tmp_path, load_registry, name, entry):
    path = tmp_path / f"{name}.yaml"

    def load(*entries):
        path.write_text(yaml.safe_dump({name: list(entries)}))
        return load_registry(path)

    assert [found.slug for found in load(entry, {**entry, "slug": "b"})] == ["a", "b"]
    with pytest.raises(SettingsError, match=rf"{name}.yaml: slug 'a' is given twice"):
        load(entry, {**entry, "slug": "b"}, entry)
    with pytest.raises(SettingsError, match=rf"unknown key '{name}.1.slg'; did you mean 'slug'"):
        load(entry, {**entry, "slg": "b"})
    with pytest.raises(SettingsError, match=rf"{name}.0.slug: .*\(found 'A.B'\)"):
        load({**entry, "slug": "A.B"})
    assert len(load({**entry, "slug": "a" * 64})) == 1
    with pytest.raises(SettingsError, match=rf"{name}.0.slug: must have at most 64 letters"):
        load({**entry, "slug": "a" * 65})


def test_the_order_of_builtin_sources_does_not_matter(load):
    one = load("corpus: {builtin: [champ, starter]}")
    two = load("corpus: {builtin: [starter, champ]}")
    assert one == two
    assert one.digest_of("corpus") == two.digest_of("corpus")


@pytest.mark.parametrize("key", ["corpus: {builtin", "evaluation: {settings"])
def test_a_list_of_wrong_names_is_not_called_too_short(load, key):
    with pytest.raises(SettingsError) as caught:
        load(f"{key}: [nobody]}}")
    assert "must be 'st" in str(caught.value)
    assert "at least 1 entry" not in str(caught.value)
    with pytest.raises(SettingsError, match="must have at least 1 entry"):
        load(f"{key}: []}}")
