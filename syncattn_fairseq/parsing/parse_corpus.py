"""Parse a text of any size in shards, without parsing a shard twice."""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from ..base.errors import BadParse, DataError
from ..base.files import hash_file, open_file, replacing
from ..base.inputs import keeping_pipes
from ..base.locks import claiming, locked, refuse_links, remove_locked
from ..base.text import is_plain, read_lines
from ..data.parses import SPANS, check_parsed
from ..data.splitters import check_splitter
from .executors import Executor
from .formats import FORMATS
from .manifest import Manifest
from .parsed_file import EMPTY, find_parses, match_parses
from .parser import Parse, ParserSource
from .shards import Shard, ShardTask, is_whole, plan_shards
from .writer import HEADS, ParseReport, open_writer

# About 20,000 sentences: minutes of work for one core, and enough of each length for batches.
_SHARD_BYTES = 2 << 20


@dataclass(frozen=True)
class ParsingPlan:
    """What to parse: the text, the parser, the output files and the limits.

    Args:
        text: one sentence per line, as people write it, or words separated by white space. If it
            is compressed or a pipe, a copy is parsed, which is kept with the shards.
        outputs: the files to write, by kind, see `ParseWriter`; must include heads.
        source: the parser.
        max_words: sentences of more words are not parsed.
        count: the number of shards; None: one per 2 MB of text.
        min_parsed: the smallest share of non-empty sentences that must get a parse.
        splitter: the splitter for the words of a raw text, if the parser has none of its own, see
            :meth:`.parser.Parser.split`; None: the words are separated by white space.
    """

    text: Path
    outputs: Mapping[str, Path]
    source: ParserSource
    max_words: int
    count: int | None = None
    min_parsed: float = 0.0
    splitter: str | None = None

    @property
    def output(self) -> Path:
        """The absolute path of the output file of heads, with links resolved."""
        return self.outputs[HEADS].resolve()

    @property
    def shards(self) -> Path:
        """The folder that holds finished shards until the output files are complete."""
        return Path(f"{self.output}.shards")

    @property
    def record(self) -> Path:
        """The file with the record of the output files' origin (a `Manifest`)."""
        return Path(f"{self.output}.manifest.json")


def parse_corpus(
    plan: ParsingPlan, execute: Executor, say: Callable[[str], None] = lambda message: None
) -> tuple[ParseReport, float]:
    """Parse a text in shards, except for shards finished by an earlier run.

    Finished shards are kept next to the output, in ``OUTPUT.shards``, until all are finished. Then
    ``OUTPUT.manifest.json`` records what the output was made from.

    Args:
        plan: the text, the parser and the output files.
        execute: the function that parses shards, here or on other machines.
        say: a function that gets messages about shards that are skipped or parsed again.

    Returns:
        The report, and the words parsed per second, 0 if there was nothing to do.

    Raises:
        DataError: the text or the parser does not work, another process is writing the same output,
            or other files or links are in the way.
    """
    for path in plan.outputs.values():
        if not path.parent.is_dir():
            raise DataError(f"{path.parent}: no such folder; make it first")
    refuse_links(plan.shards, plan.record)
    lock = plan.shards / "lock"
    with _keeping_others_out(plan, lock):
        earlier = Manifest.read(plan.record)
        unfinished = Manifest.read(plan.shards / "manifest.json")
        try:
            text = _unpack(plan.text, plan.shards / "text")
            manifest = _describe(plan, text)
            _refuse_foreign(plan.outputs, *(some.outputs for some in (earlier, unfinished) if some))
        except (DataError, OSError):
            if unfinished is None:
                remove_locked(lock)
            raise
        stale = _explain_staleness(manifest, earlier, plan.outputs) if earlier else ""
        if earlier and not stale:
            remove_locked(lock)
            _check_parsed(plan.outputs[HEADS], earlier.report, plan.min_parsed)
            say(f"{plan.output}: up to date, nothing to do")
            return earlier.report, 0.0
        if earlier:
            say(f"{plan.output}: made again: {stale}")
        kinds = tuple(plan.outputs)
        task = ShardTask(text, plan.shards, plan.source, plan.max_words, kinds, plan.splitter)
        missing = _find_missing(manifest, plan.shards, say)
        began = time.monotonic()
        try:
            _parse_missing(task, missing, manifest.shards, execute)
        except DataError:
            if unfinished is None and not any(
                s.folder(plan.shards).exists() for s in manifest.shards
            ):
                remove_locked(lock)
            raise
        seconds = time.monotonic() - began
        finished = _merge(task, manifest, plan.outputs, plan.min_parsed)
        finished.write(plan.record)
        remove_locked(lock)
    return finished.report, _count_words(missing) / seconds if missing else 0.0


@contextmanager
def _keeping_others_out(plan: ParsingPlan, lock: Path) -> Iterator[None]:
    """Lock the outputs and the folder of shards; raise `DataError` if another process has them."""
    busy = f"{plan.output}: another process is writing this file; wait until that process ends"
    others = [path for kind, path in plan.outputs.items() if kind != HEADS]
    with claiming(*others), locked(lock, busy):
        yield


def _describe(plan: ParsingPlan, text: Path) -> Manifest:
    """Divide the text into shards, and return the record of the new run."""
    count = plan.count or -(-text.stat().st_size // _SHARD_BYTES) or 1
    shards, sha256 = plan_shards(text, count)
    options = {"max_words": plan.max_words, "outputs": sorted(plan.outputs)}
    if plan.splitter is None:
        return Manifest.describe(sha256, shards, plan.source, **options)
    if plan.source.splitting_files() is None:
        check_splitter(plan.splitter)
    return Manifest.describe(sha256, shards, plan.source, splitter=plan.splitter, **options)


def _parse_missing(
    task: ShardTask, missing: Sequence[Shard], shards: Sequence[Shard], execute: Executor
) -> None:
    """Parse the missing shards, with a progress bar over all shards."""
    if not missing:
        return
    total = _count_words(shards)
    done = total - _count_words(missing)
    with tqdm(total=total, initial=done, unit="word", unit_scale=True, disable=None) as bar:
        execute(task, missing, bar.update)


def _count_words(shards: Sequence[Shard]) -> int:
    return sum(shard.words for shard in shards)


def _unpack(text: Path, copy: Path) -> Path:
    """Return a seekable text: the original, or an unpacked copy."""
    if is_plain(text):
        return text.resolve()
    with replacing(copy) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for line in read_lines(text):
            file.write(line + "\n")
        if not file.tell():
            raise DataError(f"{text}: the file is empty")
    return copy


def _refuse_foreign(outputs: Mapping[str, Path], *checksums: Mapping[str, str]) -> None:
    """Raise `DataError` if an output exists whose checksum no record of an earlier run has."""
    for kind, path in outputs.items():
        if path.is_file() and hash_file(path) not in [sums.get(kind) for sums in checksums]:
            raise DataError(
                f"{path}: already exists, and this command did not make the file, or the file "
                "has changed since; move the file away"
            )


def _explain_staleness(manifest: Manifest, earlier: Manifest, outputs: Mapping[str, Path]) -> str:
    if manifest.text != earlier.text:
        return "the text has changed"
    if differences := manifest.list_differences(earlier):
        return "; ".join(differences)
    same = all(path.exists() for path in outputs.values()) and earlier.outputs == {
        kind: hash_file(path) for kind, path in outputs.items()
    }
    return "" if same else "the output is missing or has been changed"


def _find_missing(manifest: Manifest, folder: Path, say: Callable[[str], None]) -> list[Shard]:
    path = folder / "manifest.json"
    earlier = Manifest.read(path)
    # Other folders belong to Slurm jobs that still run, or to workers that were killed.
    finished = {entry for entry in folder.iterdir() if entry.name.isdecimal()}
    usable: set[Shard] = set()
    if earlier is not None and finished:
        if differences := manifest.list_differences(earlier):
            cause = "; ".join(differences)
        else:
            same = set(manifest.shards) & set(earlier.shards)
            there = {shard for shard in same if shard.folder(folder) in finished}
            usable = {
                shard for shard in there if is_whole(shard, folder, manifest.settings["outputs"])
            }
            cause = "split differently" if manifest.text == earlier.text else "the text has changed"
            if usable != there:
                cause = "damaged"
        if stale := len(finished) - len(usable):
            say(f"{folder}: {stale} finished shards are parsed again: {cause}")
    for entry in finished - {shard.folder(folder) for shard in usable}:
        shutil.rmtree(entry)
    # After a kill inside a merge, the checksums still tell which outputs are ours.
    replace(manifest, outputs=earlier.outputs if earlier else {}).write(path)
    if usable:
        say(f"{folder}: {len(usable)} of {len(manifest.shards)} shards are already finished")
    return [shard for shard in manifest.shards if shard not in usable]


def _check_parsed(where: Path, report: ParseReport, least: float) -> None:
    parsed = report.sentences - report.empty.total()
    try:
        check_parsed(where, parsed, report.sentences - report.empty[EMPTY], least)
    except DataError as error:
        reasons = ", ".join(reason for reason, _ in report.empty.most_common(3))
        raise DataError(f"{error} (the other sentences without a parse: {reasons})") from None


def _merge(
    task: ShardTask, manifest: Manifest, outputs: Mapping[str, Path], min_parsed: float
) -> Manifest:
    """Join the shards into the output files, and return the completed record.

    The record is stored with the shards before an output is in place.
    """
    report = ParseReport()
    for shard in manifest.shards:
        report.add(task.report(shard))
    _check_parsed(outputs[HEADS], report, min_parsed)
    sums = {}
    with ExitStack() as stack:
        for kind, path in outputs.items():
            temporary = stack.enter_context(replacing(path))
            with temporary.open("wb") as whole:
                for shard in manifest.shards:
                    with open_file(shard.folder(task.shards) / kind) as part:
                        shutil.copyfileobj(part, whole)
            sums[kind] = hash_file(temporary)
        finished = replace(manifest, outputs=sums, report=report)
        finished.write(task.shards / "manifest.json")
    return finished


@keeping_pipes()
def convert_parsed(
    text: Path,
    parsed: Path,
    file_format: str,
    outputs: Mapping[str, Path],
    min_parsed: float = 0.0,
    anywhere: bool = False,
) -> tuple[ParseReport, float]:
    """Convert a parser's output file into the parses of a text.

    Args:
        text: one sentence per line; if spans are written, as people write it, else words separated
            by white space.
        parsed: the file of the parser's output.
        file_format: the format of that file, one of `formats.FORMATS`.
        outputs: the files to write, by kind, see `ParseWriter`; must include heads.
        min_parsed: the smallest share of non-empty sentences that must get a parse.
        anywhere: whether the parser's sentences may be in any order, and of other texts, too; then
            all parses of the text are held in memory.

    Returns:
        The report, and the words converted per second.

    Raises:
        DataError: a line is not in the format, an output exists already, or too few sentences have
            a parse.
    """
    for path in outputs.values():
        if path.is_file():
            raise DataError(f"{path}: already exists; move the file away")
    began = time.monotonic()
    analyses = FORMATS[file_format](read_lines(parsed), str(parsed))
    raw = SPANS in outputs
    parses: Iterable[Parse | BadParse] = (
        find_parses([*read_lines(text)], analyses, raw)
        if anywhere
        else match_parses(read_lines(text), analyses, str(parsed), raw)
    )
    lines = tqdm(read_lines(text), unit="sentence", disable=None)
    with ExitStack() as stack:
        paths = {kind: stack.enter_context(replacing(path)) for kind, path in outputs.items()}
        with open_writer(paths) as writer:
            for line, parse in zip(lines, parses, strict=True):
                own = parse.words if isinstance(parse, Parse) else ()
                writer.write(own or line.split(), parse, line if raw else None)
        _check_parsed(parsed, writer.report, min_parsed)
    return writer.report, writer.report.words / (time.monotonic() - began)
