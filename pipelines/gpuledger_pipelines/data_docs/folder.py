"""The folder of what gates found: a result a file, a page for each, and a bound on how many.

``results/TABLE/CLUSTER/TIME/ROWS.json`` is what Great Expectations said of the rows, ``suites/TABLE.json`` what was
tried last, ``site`` the pages. Great Expectations writes and reads the first two and renders the third.
"""

import copy
import fcntl
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from gpuledger.settings import Settings

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
    from great_expectations.data_context.types.resource_identifiers import ValidationResultIdentifier
    from great_expectations.expectations.expectation import Expectation

RESULTS, SUITES, SITE = "results", "suites", "site"
INDEX = "index.html"

ROWS_KEPT = 200
"""Failing rows of an expectation that a result keeps; the count beside them is whole."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What a suite was tried on.

    Args:
        table: The table of the warehouse.
        cluster: Whose rows.
        rows: Which of them, for people.
        run: The run that restated them, where there is one.
    """

    table: str
    cluster: str
    rows: str
    run: str = ""


@dataclass(frozen=True, slots=True)
class DataDocs:
    """The folder.

    Args:
        folder: Where it is; made when something is kept.
        kept: How many results of each table and cluster; older ones go, with their pages.
        url: Where a web server shows ``site``, if one does.
    """

    folder: Path
    kept: int
    url: str | None = None

    @classmethod
    def of(cls, settings: Settings) -> "DataDocs":
        """Return the folder that the settings name."""
        return cls(settings.data_docs_folder, settings.data_docs_kept, settings.data_docs_url)

    @property
    def index(self) -> Path:
        """The page that lists all others."""
        return self.folder / SITE / INDEX

    def keep(
        self, tried: Tried, result: "ExpectationSuiteValidationResult", suite: "Sequence[Expectation]"
    ) -> Path:
        """Keep a result and make its page; return where the page is.

        Raises:
            OSError: When the folder cannot be written.
        """
        import great_expectations as gx

        key = _key(tried, result)
        with self._alone(), _quietly():
            context = self._context()
            context.validation_results_store.store_validation_results(_shortened(tried, result), key)
            expectations = [copy.copy(each) for each in suite]
            context.suites.add_or_update(gx.ExpectationSuite(name=tried.table, expectations=expectations))
            self._forget(tried)
            wanted = [key, key.expectation_suite_identifier]
            context.build_data_docs(resource_identifiers=wanted, build_index=False)  # type: ignore[arg-type] # takes both kinds
        *above, name = key.to_tuple()  # type: ignore[no-untyped-call]
        return self.folder.joinpath(SITE, "validations", *above, f"{name}.html")

    def build(self, *, anew: bool = False) -> Path | None:
        """List all pages in the index; return where it is, or None where nothing was ever kept.

        Args:
            anew: Make every page again, too, such as after an upgrade.

        Raises:
            OSError: When the folder cannot be written.
        """
        if not (self.folder / RESULTS).exists():
            return None
        with self._alone(), _quietly():
            # The library takes no identifiers for all, so one that nobody has stands for none.
            self._context().build_data_docs(resource_identifiers=None if anew else [_NOTHING])  # type: ignore[arg-type]
        return self.index

    def link(self, page: Path) -> str:
        """Return where people find a page: behind the web server if there is one, else the path."""
        if self.url is None:
            return str(page)
        return f"{self.url.rstrip('/')}/{quote(page.relative_to(self.folder / SITE).as_posix())}"

    def _forget(self, tried: Tried) -> None:
        """Remove the oldest results of the table and cluster, and their pages: names of times sort."""
        below = Path(tried.table, _named(tried.cluster))
        times = sorted(path.name for path in (self.folder / RESULTS / below).iterdir())
        for time in times[: -self.kept]:
            for root in (self.folder / RESULTS, self.folder / SITE / "validations"):
                for path in (root / below / time).glob("*"):
                    path.unlink()
                if (root / below / time).exists():
                    (root / below / time).rmdir()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes out: runs of several clusters write the same suites and index."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _context(self) -> "EphemeralDataContext":
        import great_expectations as gx
        from great_expectations.data_context.types.base import DataContextConfig, ProgressBarsConfig

        import gpuledger_pipelines.laws  # noqa: F401 - results name its expectations

        def files(below: str) -> dict[str, Any]:
            return {
                "class_name": "TupleFilesystemStoreBackend",
                "base_directory": str(self.folder / below),
                "suppress_store_backend_id": True,
            }

        def store(kind: str, below: str | None = None) -> dict[str, Any]:
            backend = files(below) if below else {"class_name": "InMemoryStoreBackend"}
            return {"class_name": kind, "store_backend": backend}

        site = {
            **_ours("Site"),
            "store_backend": files(SITE),
            "show_how_to_buttons": False,
            "site_index_builder": {**_ours("Index"), "view": _ours("IndexView")},
            "site_section_builders": {
                "expectations": {"view": _ours("PageView")},
                # A cluster may be called as the library calls runs that it leaves out.
                "validations": {
                    "view": _ours("PageView"),
                    "renderer": _ours("ResultRenderer"),
                    "run_name_filter": {"not_includes": "\0"},
                },
                "profiling": "None",
            },
        }
        return gx.get_context(
            mode="ephemeral",
            project_config=DataContextConfig(
                expectations_store_name="suites",
                validation_results_store_name="results",
                checkpoint_store_name="checkpoints",
                stores={
                    "suites": store("ExpectationsStore", SUITES),
                    "results": store("ValidationResultsStore", RESULTS),
                    "checkpoints": store("CheckpointStore"),
                    "validation_definition_store": store("ValidationDefinitionStore"),
                },
                data_docs_sites={"warehouse": site},
                analytics_enabled=False,
                progress_bars=ProgressBarsConfig(globally=False, metric_calculations=False),
            ),
        )


_NOTHING = ("nothing",)


def _ours(name: str) -> dict[str, str]:
    return {"module_name": "gpuledger_pipelines.data_docs.site", "class_name": name}


def _named(text: str) -> str:
    """Return a text as the name of a file or folder, whatever it holds."""
    return quote(text, safe=" ").replace(".", "%2E")


def _key(tried: Tried, result: "ExpectationSuiteValidationResult") -> "ValidationResultIdentifier":
    from great_expectations.core.run_identifier import RunIdentifier
    from great_expectations.data_context.types.resource_identifiers import (
        ExpectationSuiteIdentifier,
        ValidationResultIdentifier,
    )

    return ValidationResultIdentifier(
        expectation_suite_identifier=ExpectationSuiteIdentifier(tried.table),
        run_id=RunIdentifier(run_name=_named(tried.cluster), run_time=result.meta["run_id"].run_time),
        batch_identifier=_named(tried.rows),
    )


def _shortened(
    tried: Tried, result: "ExpectationSuiteValidationResult"
) -> "ExpectationSuiteValidationResult":
    """Return the result with some of the failing rows, and without what says how the database is reached."""
    from great_expectations.core.run_identifier import RunIdentifier

    short = copy.deepcopy(result)
    for outcome in short.results:
        outcome.result = _some(outcome.result)
    run_id: RunIdentifier = result.meta["run_id"]
    short.suite_name = tried.table
    short.meta = {
        "great_expectations_version": result.meta["great_expectations_version"],
        "run_id": RunIdentifier(run_name=tried.cluster, run_time=run_id.run_time),
        "validation_time": run_id.run_time,
        "active_batch_definition": {"data_asset_name": f"warehouse.{tried.table}"},
        "batch_parameters": {"cluster": tried.cluster, "rows": tried.rows, "run": tried.run or "none"},
    }
    return short


def _some(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    match value:
        case dict():
            return {key: _some(each) for key, each in value.items()}
        case list():
            return [_some(each) for each in value[:ROWS_KEPT]]
        case _:
            return value


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep the library's remarks to itself; what it cannot do, it raises."""
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
