"""What a world may not do, and what it may."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Start

REFUSED = [
    ("import time; time.time()", "time.time is not allowed in a world: "),
    ("import time; time.monotonic()", "time.monotonic"),
    ("import time; time.sleep(1)", "a world does not wait"),
    ("import time; time.localtime()", "time.localtime"),
    ("import random; random.random()", "use t.rand"),
    ("import random; random.shuffle([1])", "random.shuffle"),
    ("import random; random.seed(1)", "random.seed"),
    ("import random; random.Random()", "seed it with t.rand.uint64()"),
    ("import random; random.SystemRandom().random()", "is not allowed"),
    ("import os; os.urandom(1)", "os.urandom"),
    ("import uuid; uuid.uuid4()", "use uuid.UUID(int=t.rand.uint64())"),
    ("import uuid; uuid.uuid1()", "uuid.uuid1"),
    ("import secrets; secrets.token_hex()", "secrets.token_hex"),
    ("import socket; socket.socket()", "use await t.do(...)"),
    ("import urllib.request; urllib.request.urlopen('http://127.0.0.1:1')", "socket."),
    ("open('/dev/null')", "open is not allowed in a world: read files when the module is imported"),
    ("open('/dev/null', 'w')", "open is not allowed"),
    ("import io; io.open('/dev/null')", "io.open"),
    ("import pathlib; pathlib.Path('/dev/null').read_text()", "io.open"),
    ("import os; os.listdir('/')", "os.listdir"),
    ("import threading; threading.Thread(target=print).start()", "use await t.fork(...)"),
    ("import subprocess; subprocess.run(['true'])", "subprocess.Popen"),
    ("import os; os.system('true')", "os.system"),
    ("import os; os.fork()", "os.fork"),
    ("import os; os.getpid()", "os.getpid"),
    ("import os; os.getppid()", "os.getppid"),
    ("import os; os.times()", "os.times is not allowed in a world: a world must play the same every time"),
    ("import _thread; _thread.start_new_thread(print, ())", "_thread.start_new_thread"),
    ("import sqlite3; sqlite3.connect('x.db')", "sqlite3.connect is not allowed in a world: use await t.do(...)"),
    ("from sqlite3.dbapi2 import connect; connect(database='x.db')", "sqlite3.connect"),
    ("input()", "input is not allowed"),
    ("import time; time.strftime('%Y')", "time.strftime"),
    ("import os; os.path.exists('/')", "os.path.exists is not allowed in a world: read files when"),
    ("import os; os.stat('/')", "os.stat"),
    ("import pathlib; pathlib.Path('/').is_dir()", "is not allowed in a world: read files"),
    ("import os; os.getcwd()", "os.getcwd"),
    ("import os; os.environ['PATH']", "os.environ is not allowed in a world: read the environment when the module is imported"),
    ("import os; os.environ.get('PATH')", "os.environ"),
    ("import os; os.getenv('PATH')", "os.environ"),
    ("import os; dict(os.environ)", "os.environ"),
    ("import asyncio; asyncio.run(t.one('a', 'x'))", "asyncio is not allowed in a world: await only its table"),
]

ALLOWED = [
    "import random; random.Random(3).random(); random.Random(t.rand.uint64()).gauss(0, 1); t.rand.python().choices([1, 2], k=3)",
    "import time; time.gmtime(0); time.strftime('%Y', time.gmtime(0)); time.localtime(0)",
    "import sys; assert 'pandas' not in sys.modules\ntry: import pandas\nexcept ImportError: pass",
    "import datetime; d = datetime.datetime(2020, 1, 1); assert isinstance(d + datetime.timedelta(1), datetime.datetime); datetime.date(2020, 1, 1)",
    "import datetime; assert issubclass(datetime.datetime, datetime.date); assert datetime.datetime.fromisoformat('2020-01-01').year == 2020",
    "import impure_at_import",
    "import logging; logging.warning('x')",
    "import warnings; warnings.warn('x')",
    "import uuid; uuid.UUID(int=t.rand.uint64())",
    "import sys, io, os\nclass Out(io.StringIO):\n    def write(self, s): os.getpid(); return super().write(s)\nsys.stdout = Out(); print('as in a notebook')",
    "import os.path; os.path.join('a', 'b'); os.path.basename('/a/b')",
    "import time; time.strftime('%Y', (2020, 1, 1, 0, 0, 0, 0, 1, 0))",
    "import sqlite3; sqlite3.connect(':memory:').execute('select 1')",
    "import shutil; shutil.get_terminal_size()",
    "import hashlib; hashlib.sha256(b'x').hexdigest()",
]


@pytest.mark.parametrize(("play", "want"), REFUSED, ids=[p for p, _ in REFUSED])
def test_refused(start: Start, play: str, want: str) -> None:
    text = start(f"await t.one('a', 'x')\n{play}\n")
    text.begin()
    got = text.reply("x")["error"]["text"]
    assert got.startswith("w.py:6: Impure: ") and want in got


@pytest.mark.parametrize("play", ALLOWED)
def test_allowed(start: Start, play: str) -> None:
    e = start(play)
    file = e.errors.name.replace("w.err", "impure_at_import.py")
    with open(file, "w") as f:
        f.write("import time, random, os\ntime.time(); random.random(); os.urandom(1); open(__file__).read()\n")
    assert e.begin() == {"end": {}}


@pytest.mark.parametrize("play", [p for p, _ in REFUSED if "time.time" in p or "uuid4" in p or "now" in p])
def test_episodes_are_not_guarded(start: Start, play: str) -> None:
    whole = f"import parley\nclass W(parley.World):\n    durable = 'episode'\n    def seats(self): return ['a']\n    async def play(self, t):\n        {play}\n"
    e = start(whole=whole)
    assert e.hello["durable"] == "episode" and e.begin() == {"end": {}}


DATES = ["datetime.now()", "module.datetime.utcnow()", "date.today()", "module.date.today()", "other.today()"]
DATES += ["import datetime as d; d.datetime.now()", "from datetime import date as d; d.today()", "import late; late.now()"]


@pytest.mark.parametrize("play", DATES)
def test_dates(start: Start, tmp_path: Path, play: str) -> None:
    (tmp_path / "other.py").write_text("from datetime import date\ndef today(): return date.today()\n")
    (tmp_path / "late.py").write_text("import datetime\ndef now(): return datetime.datetime.now()\n")
    head = "import datetime as module\nfrom datetime import date, datetime\nimport other\nimport parley\nSTART = datetime.now()\nclass W(parley.World):\n"
    body = f"    def seats(self): return ['a']\n    async def play(self, t):\n        assert isinstance(START, datetime) and issubclass(datetime, date)\n        {play}\n"
    got = start(whole=head + body).begin()["error"]["text"]
    assert "Impure: datetime." in got and "is not allowed in a world" in got


def test_dates_below_the_folder(start: Start, tmp_path: Path) -> None:
    """Packages of the author are guarded. Libraries in a virtual environment beside the world keep their datetime: extensions rely on it."""
    library = tmp_path / "venv" / "lib" / "site-packages"
    for folder in (tmp_path / "sub" / "deep", library):
        folder.mkdir(parents=True)
    (tmp_path / "sub" / "deep" / "clock.py").write_text("from datetime import datetime\ndef now(): return datetime.now()\n")
    (library / "lib.py").write_text("import datetime\ndef now(): return datetime.datetime.now()\n")
    head = f"import sys; sys.path.append({str(library)!r})\nimport lib, sub.deep.clock\nimport parley\nclass W(parley.World):\n"
    play = "    def seats(self): return ['a']\n    async def play(self, t):\n        lib.now()\n        await t.one('a', 'x')\n        sub.deep.clock.now()\n"
    e = start(whole=head + play)
    assert "ask" in e.begin()
    assert "Impure: datetime.datetime.now is not allowed in a world" in e.reply("x")["error"]["text"]


CHANCE = ["np.random.rand()", "np.random.seed(1)", "np.random.default_rng()", "np.random.default_rng(None)", "default_rng()", "shuffle([1, 2])"]


@pytest.mark.parametrize("play", CHANCE)
def test_numpy(start: Start, play: str) -> None:
    pytest.importorskip("numpy")
    head = "import numpy as np\nfrom numpy.random import default_rng, shuffle\nimport parley\nclass W(parley.World):\n    def seats(self): return ['a']\n    async def play(self, t):\n"
    body = f"        assert np.random.default_rng(t.rand.uint64()).random() < 1 and np.random.RandomState(3).rand() < 1\n        {play}\n"
    got = start(whole=head + body).begin()["error"]["text"]
    assert got.startswith("w.py:8: Impure: numpy.random") and "use numpy.random.default_rng(t.rand.uint64())" in got


IMPORTED = ["import numpy as np; np.random.rand()", "from numpy.random import default_rng; default_rng()", "import numpy.random; numpy.random.seed(1)"]


@pytest.mark.parametrize("play", IMPORTED)
def test_numpy_imported_by_a_step(start: Start, play: str) -> None:
    pytest.importorskip("numpy")
    e = start(f"await t.one('a', 'x')\n{play}\n")
    e.begin()
    assert e.reply("x")["error"]["text"].startswith("w.py:6: Impure: numpy.random")


def test_acts_are_not_guarded(start: Start) -> None:
    e = start("import time, uuid\nawait t.do(time.time)\n")
    e.begin()
    assert e.ask("act", episode="e", strand="", index=0, act={})["result"] > 0
