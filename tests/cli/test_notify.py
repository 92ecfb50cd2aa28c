"""`hpc-train notify`, and what a config may say of notices and of Prometheus."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import DIGITS
from tests.supervisor.channels import SECRET, channel


def test_a_test_notice_goes_to_each_channel(hpc, monkeypatch: pytest.MonkeyPatch) -> None:
    with channel() as one, channel() as other:
        monkeypatch.setenv("CHAT", f"{one.url}\n{other.url}")
        said = hpc("notify", DIGITS, "notify.urls_from=CHAT", "notify.timeout_s=30")
    assert (said.code, said.out) == (0, "sent to 2 channels; look whether it came\n")
    assert one.titles == other.titles == ["a test"]
    assert "A run of digits would be told of here: start, end" in one.came[0]["message"]
    assert SECRET not in said.err


def test_what_failed_is_told_with_apprises_own_words(hpc, monkeypatch: pytest.MonkeyPatch) -> None:
    with channel(status=500) as refuses:
        monkeypatch.setenv("CHAT", refuses.url)
        said = hpc("notify", DIGITS, "notify.urls_from=CHAT", "notify.timeout_s=30")
    assert said.code == 1
    assert "error=500" in said.err
    assert "error: channel 1 of 1 (JSON) did not take it: " in said.err
    assert [line[:8] for line in said.err.splitlines()] == ["error: c", "  fix: c"]


@pytest.mark.parametrize(
    ("holds", "message"),
    [
        (b"slak://a/secret", "is none that Apprise knows (slak://...): "),
        (b"me@example.org", "is none that Apprise knows, which begin with SERVICE://: "),
        (b"json://127.0.0.1:9/secret", "channel 1 of 1 (JSON) did not take it: "),
        (b"\n", "urls is empty"),
        (bytes(range(128, 256)), "urls: cannot be read as text"),
        (None, "urls: Is a directory"),
    ],
)
def test_an_address_that_is_none_is_told_in_one_line(
    hpc, tmp_path: Path, holds: bytes | None, message: str
) -> None:
    if holds is None:
        (tmp_path / "urls").mkdir()
    else:
        (tmp_path / "urls").write_bytes(holds)
    said = hpc("notify", DIGITS, f"notify.urls_from={tmp_path}/urls", "notify.timeout_s=30")
    error, fix = said.err.splitlines()
    assert said.code == 1
    assert message in error
    assert fix.startswith("  fix: ")


def test_without_a_place_for_addresses_the_fix_says_where_they_belong(hpc) -> None:
    said = hpc("notify", DIGITS)
    assert said.code == 2
    assert "has no notify.urls_from" in said.err


@pytest.mark.parametrize("form", ["slack://{}/b/c", "https://x/{}", "to{}@example.org", "./{}"])
def test_an_address_in_a_config_is_refused_without_a_word_of_it(
    hpc, tmp_path: Path, form: str
) -> None:
    said = hpc("submit", DIGITS, "--cluster", "local", f"notify.urls_from={form.format(SECRET)}")
    assert said.code == 3
    assert "notify.urls_from is neither the name of a variable nor a file" in said.err
    assert SECRET not in said.err
    assert not (tmp_path / "runs").exists()


def test_a_variable_that_is_not_set_is_a_note_and_no_refusal(hpc) -> None:
    said = hpc("config", "show", DIGITS, "notify.urls_from=CHAT_THAT_IS_NOT_SET")
    assert said.code == 0
    assert "note: notify.urls_from: CHAT_THAT_IS_NOT_SET is not set here, so no notice" in said.err


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ("me@uni.edu", "what it has is no URL, and no notice will be sent: for mail write mailto:"),
        ("json://h/SECRET\nme@uni.edu", "1 of 2 are no URLs, and to these no notice will be sent:"),
        ("slack: SECRET", "2 of 2 are no URLs, and no notice will be sent: write SERVICE://..."),
    ],
)
def test_a_line_that_is_no_url_is_a_note_without_a_word_of_it(
    hpc, tmp_path: Path, lines: str, what: str
) -> None:
    (tmp_path / "urls").write_text(f"# mine\n{lines}\n")
    said = hpc("config", "show", DIGITS, f"notify.urls_from={tmp_path}/urls")
    assert said.code == 0
    assert f"note: notify.urls_from: {tmp_path}/urls: {what}" in said.err
    assert "SECRET" not in said.err
    assert "me@uni.edu" not in said.err


def test_a_test_notice_to_a_line_that_is_no_url_says_what_one_is(hpc, tmp_path: Path) -> None:
    (tmp_path / "urls").write_text("me@uni.edu\n")
    said = hpc("notify", DIGITS, f"notify.urls_from={tmp_path}/urls", "notify.timeout_s=30")
    assert said.code == 1
    assert "fix: for mail write mailto://USER:PASSWORD@HOST there; or in place of" in said.err


@pytest.mark.parametrize(
    ("words", "complaint", "fix"),
    [
        ("notify.events=[end,fialure]", "notify.events.1 is 'fialure'", "did you mean 'failure'?"),
        ("notify.events=[hourly]", "notify.events.0 is 'hourly'", "write start, end, failure"),
        ("notify.timeout_s=600", "notify.timeout_s is 600", "write 60 or less"),
        ("notify.urls_from=''", "notify.urls_from is empty", "leave it out"),
        ("notify.urls_from=.", "is a path that depends on the folder", "write the whole path: /"),
        ("preflight.prometheus_dir=/etc/passwd", "prometheus_dir is '/etc/passwd'", "whole path"),
        ("preflight.prometheus_dir=prom", "preflight.prometheus_dir is 'prom'", "whole path"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_to_write(
    hpc, words: str, complaint: str, fix: str
) -> None:
    said = hpc("submit", DIGITS, "--dry-run", words)
    assert said.code == 3
    assert complaint in said.err
    assert fix in said.err


@pytest.mark.parametrize(
    ("words", "type_"),
    [([], None), (["slurm.mail_type=BEGIN"], "BEGIN"), (["slurm.mail_user=me@x.org"], "END,FAIL")],
)
def test_an_address_for_slurms_mail_alone_means_mail_at_the_end(
    hpc, words: list[str], type_: str | None
) -> None:
    lines = hpc("render", DIGITS, *words).out.splitlines()
    told = [line for line in lines if line.startswith("#SBATCH --mail-type")]
    assert told == ([f"#SBATCH --mail-type={type_}"] if type_ else [])
