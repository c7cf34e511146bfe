"""Counters of a service, for monitoring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator


class Counters:
    """Counts of a service's requests, sentences and seconds since its start.

    Only the thread that answers requests uses them.

    Attributes:
        requests: the number of requests, by path and status; the path is empty for a request that
            is not HTTP.
        sentences: how many sentences were answered.
        seconds: how long requests about sentences took, all together.
    """

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.sentences = 0
        self.seconds = 0.0

    def write(self, running: int) -> str:
        """Return the counts in the text format of Prometheus.

        Args:
            running: how many requests the model works on.
        """
        return "".join(f"{line}\n" for line in self._write(running))

    def _write(self, running: int) -> Iterator[str]:
        yield "# TYPE syncattn_requests_total counter"
        for (path, status), count in sorted(self.requests.items()):
            yield f'syncattn_requests_total{{path="{path}",status="{status}"}} {count}'
        yield "# TYPE syncattn_sentences_total counter"
        yield f"syncattn_sentences_total {self.sentences}"
        yield "# TYPE syncattn_seconds_total counter"
        yield f"syncattn_seconds_total {self.seconds:.3f}"
        yield "# TYPE syncattn_running gauge"
        yield f"syncattn_running {running}"
