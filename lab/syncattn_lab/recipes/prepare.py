"""The stages that prepare a corpus: from public archives to binarised texts and parses."""

from __future__ import annotations

from pathlib import Path

from syncattn_fairseq.data.parses import LINKS

from . import binary_steps, text_steps
from .corpus_facts import Corpus
from .corpus_texts import UNPARSED
from .places import MULTI_TASK, PIECES, data
from .stages import Stage, Step, link_stages, read_options


def list_preparation(corpus: Corpus, cores: int, parsing: int, needs: set[str]) -> list[Stage]:
    """Return the stages that prepare a corpus, up to binarised texts and annotations.

    The stages of the texts are the same for all systems. Parses have a stage for each language and
    each kind, each with its own ``.done`` file: a later system adds only what it needs.

    Args:
        corpus: the corpus.
        cores: the number of processes of each step.
        parsing: the number of processes that parse.
        needs: the annotations that the systems need (`.row_settings.list_needs`).
    """
    compared = _list_steps(corpus, 1, 1, needs)  # settings do not depend on the machine
    stages = []
    for name, steps in _list_steps(corpus, cores, parsing, needs).items():
        stage = Stage(
            name.partition("-")[0],
            Path("logs", corpus.name, name),
            steps,
            title=f"{corpus.name}: {name.replace('-', ' ')}",
            settings={f"command {n}": str(step) for n, step in enumerate(compared[name], 1)},
            programs=_list_programs(corpus, name),
        )
        stages.append(stage)
    return link_stages(stages)


def list_import(corpus: Corpus) -> list[Stage]:
    """Return a list with the stage that imports the model to start from; empty without a model."""
    stages = list_preparation(corpus, 1, 1, set())
    return [stage for stage in stages if stage.name == "import"]


def _list_steps(corpus: Corpus, cores: int, parsing: int, needs: set[str]) -> dict[str, list[Step]]:
    """Return the steps of each stage that prepares a corpus, by the name of the stage."""
    stages = {}
    parsed = [] if corpus.generated else list_parsed(corpus, needs)
    stages["import"] = text_steps.import_start(corpus)
    if corpus.generated:
        stages["generate"] = text_steps.generate(corpus)
    else:
        for language in parsed:
            stages[f"download-{language}"] = text_steps.download_models(corpus, language)
        stages["download"] = text_steps.download(corpus)
        stages["collect"] = text_steps.collect(corpus)
        stages["tokenise"] = text_steps.tokenise(corpus, cores)
        stages["clean"] = text_steps.clean(corpus)
    stages["examine"] = text_steps.examine(corpus)
    stages["subwords"] = text_steps.split_subwords(corpus, cores)
    if needs:
        stages["parse"] = text_steps.collect_parses(corpus, needs)
    for language in parsed:
        stages[f"parse-{language}"] = text_steps.parse(corpus, language, parsing)
    stages["binarise"] = binary_steps.binarise(corpus, cores, PIECES, data(corpus))
    stages[f"binarise-{UNPARSED}"] = binary_steps.add_unparsed(corpus, cores)
    stages["binarise-record"] = binary_steps.record(corpus)
    for need in sorted(needs - {MULTI_TASK}):
        stages[f"binarise-{need.replace('.', '-', 1)}"] = binary_steps.add_parses(corpus, need)
    if MULTI_TASK in needs:
        stages[f"binarise-{MULTI_TASK}"] = binary_steps.mix(corpus, cores)
    return {name: steps for name, steps in stages.items() if steps}


def _list_programs(corpus: Corpus, stage: str) -> tuple[str, ...]:
    name, _, language = stage.partition("-")
    parser = read_options(corpus.parses.get(language, "")).get("--parser", "")
    uses_eda = name == "parse" and parser.partition(":")[0] == "eda"
    return ("kytea", "eda") if uses_eda else ()


def list_parsed(corpus: Corpus, needs: set[str]) -> list[str]:
    """Return the languages that a parser has to parse, since no treebank has their parses."""
    labelled = {f"labels.{corpus.source}", MULTI_TASK} & needs
    treebanks = corpus.list_treebanks()
    languages = {kind.partition(".")[2] for kind in needs - {MULTI_TASK, LINKS}} - {*treebanks}
    if labelled and not (corpus.source in treebanks and corpus.list_parses("labels", "train")):
        languages.add(corpus.source)
    return [language for language in corpus.languages if language in languages]
