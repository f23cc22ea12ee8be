"""pytest --rdna-emulate gfx1201 --rdna-check: tests use emulated GPUs, and a test fails when kernels that it launched
did what the checker finds, or did not run to their end."""
import pytest

import rdna_emulator

def pytest_addoption(parser):
    group = parser.getgroup("rdna", "emulated AMD GPUs")
    group.addoption("--rdna-emulate", metavar="GPU", help="use emulated GPUs: gfx1201, or several with commas")
    group.addoption("--rdna-check", action="store_true",
                    help="with --rdna-emulate: a finding of the checker fails the test that caused it")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config):
    """Before any conftest.py, which may import what looks for a GPU."""
    options = early_config.known_args_namespace
    if options.rdna_emulate:
        # findings are reports, so that one does not become an error of a call in the middle of the test, or of the next
        rdna_emulator.load(options.rdna_emulate, "report" if options.rdna_check else False)


def pytest_configure(config):
    if config.getoption("rdna_check") and not config.getoption("rdna_emulate"):
        raise pytest.UsageError("--rdna-check looks at emulated kernels: which GPU? --rdna-emulate gfx1201, for example")
    if config.getoption("rdna_check"):
        rdna_emulator.take_reports()
        config.pluginmanager.register(_Checker(), "rdna_checker")


class _Checker:
    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        report = outcome.get_result()
        found = rdna_emulator.take_reports()
        if not found:
            return
        report.sections.append((f"rdna emulator, {call.when}", "\n".join(found)))
        if report.outcome == "passed":
            report.outcome = "skipped" if hasattr(report, "wasxfail") else "failed"  # the first is how xfail is told
            report.longrepr = "\n".join(["kernels did wrong on the emulated GPU:", *found])
