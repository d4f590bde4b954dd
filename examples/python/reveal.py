"""Finds a secret word in a text, plain or in disguise: the rule of the game of secrets, as in worlds/secrets/reveal."""

import base64
import binascii
import re
import unicodedata

FORMS = ["said", "partial", "lookalike", "spelled", "split", "reversed", "base64", "hex", "bytes", "rot13", "cipher", "morse", "nato", "numbers", "acrostic"]

SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_FIELD = re.compile(f"[^{SPACES}]+")
_SOUNDS = {
    c: group[0]
    for group in (
        "aàáâãäåāăą cçćĉċč dďđ eèéêëēĕėęě gĝğġģ hĥħ iìíîïĩīĭįı jĵ kķ lĺļľŀł nñńņňŉ oòóôõöøōŏő rŕŗř sśŝşšſ tţťŧ uùúûüũūŭůűų wŵ yýÿŷ zźżž"
    ).split()
    for c in group[1:]
}
_TWINS = {
    c: group[0]
    for group in (
        "aаαɑᴀᵃₐɐ bьβʙᵇϐ cсϲᴄᶜℂℭɔ dԁᴅᵈⅾ eеёεєᴇᵉℯℰǝ fꜰᶠℱϝɟ gɡցɢᵍℊƃ hһհʜʰℋℌℍɥ iіїιɪᶦⁱⅰℐℑᴉ jјᴊʲϳɾ kкκᴋᵏʞ lӏʟˡⅼℒן mмᴍᵐⅿℳɯ nпηոɴⁿℕ oоοσօᴏᵒℴ pрρᴘᵖℙ "
        "qԛզǫℚ rгʀʳℛℜℝɹ sѕꜱˢ tтτᴛᵗʇ uυսᴜᵘ vѵνᴠᵛⅴʌ wԝωᴡʷʍ xхχˣⅹ yуγүʏʸʎ zᴢᶻℤℨ"
    ).split()
    for c in group[1:]
}
_FILLERS = {"and", "then", "next", "comma", "dash", "hyphen", "dot", "space", "capital", "letter", "followed", "by"}
_SMALL = {"a", "an", "are", "is", "my", "of", "the"}
_MORSE = dict(
    zip(
        ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --..".split(),
        "abcdefghijklmnopqrstuvwxyz",
    )
)
_NATO = (
    "alpha alfa bravo charlie delta echo foxtrot golf hotel india juliet juliett kilo lima mike november oscar papa quebec romeo sierra tango uniform "
    "victor whiskey whisky xray yankee zulu"
).split()
_AS_IN = re.compile(r"\b([a-z]) (?:as in|like in|for|is for|like) [a-z]+", re.ASCII)
_HEX = re.compile(r"(?:(?:\\x|0x|%|&#x|\\u00|u\+00)?[0-9a-f]{2}[\t\n\f\r ,;:-]*){3,}", re.ASCII | re.IGNORECASE)
_PAIR = re.compile(r"(?:\\x|0x|%|&#x|\\u00|u\+00)?([0-9a-f]{2})", re.ASCII | re.IGNORECASE)
_COUNT = re.compile(r"\b\d{1,3}(?:[\t\n\f\r ,;:/|.&#+()\[\]-]+\d{1,3}\b){2,}", re.ASCII)


def fields(text):
    return _FIELD.findall(text)


def _lower(c):
    return c.lower()[:1]


def _sound(c):
    c = _lower(c)
    return _SOUNDS.get(c, c)


def _look(c):
    r = ord(c)
    if r < 0x80:
        return _lower(c)
    if 0xFF01 <= r <= 0xFF5E:
        return _lower(chr(r - 0xFEE0))
    for low, high, first, size in ((0x1D400, 0x1D6A3, 0x1D400, 26), (0x24B6, 0x24E9, 0x24B6, 26), (0x249C, 0x24B5, 0x249C, 26)):
        if low <= r <= high:
            return chr(97 + (r - first) % size)
    if 0x1F130 <= r <= 0x1F149 or 0x1F150 <= r <= 0x1F169 or 0x1F170 <= r <= 0x1F189:
        return chr(97 + (r - 0x1F130) % 32)
    if 0x1F1E6 <= r <= 0x1F1FF:
        return chr(97 + r - 0x1F1E6)
    s = _sound(c)
    return _TWINS.get(s, s) if ord(s) >= 0x80 else s


def _split(text, fold):
    out = []
    for c in text:
        if ord(c) >= 0x80:
            c = fold(c)
        if c.isascii():
            out.append(c.lower() if c.isalnum() else " ")
            continue
        kind = unicodedata.category(c)
        if kind in ("Mn", "Cf"):
            continue
        out.append(c if kind[0] == "L" or kind in ("Nd", "Mc") else " ")
    return fields("".join(out))


def words(text):
    """Split a text into its words as they sound."""
    return _split(text, _sound)


def look_words(text):
    """Split a text into its words as they look."""
    return _split(text, _look)


_UNSPACED = re.compile("[\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufad9\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff\uff66-\uff9d\u0e01-\u0e3a\u0e40-\u0e5b\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f]")


def unspaced(text):
    """Report whether a text is in a script that puts no spaces between words."""
    return _UNSPACED.search(text) is not None


def _is_letter(c):
    return unicodedata.category(c)[0] == "L"


class _Runs:
    """Collects runs of letters, with a space between two."""

    def __init__(self):
        self.text, self.ended = "", False

    def add(self, letters):
        if self.ended and self.text:
            self.text += " "
        self.ended = False
        self.text += letters

    def end(self):
        self.ended = True


def _letter_runs(found):
    runs, double = _Runs(), False
    for w in found:
        if w == "double":
            double = True
            continue
        if w in _FILLERS or "0" <= w[0] <= "9":
            continue
        if len(w) == 1:
            runs.add(w)
            if double:
                runs.add(w)
        else:
            runs.end()
        double = False
    return runs.text


def _morse(text):
    runs, sign, other = _Runs(), "", False

    def flush():
        nonlocal sign, other
        letter = _MORSE.get(sign)
        if letter and not other:
            runs.add(letter)
        elif other or sign:
            runs.end()
        sign, other = "", False

    for c in text:
        if c in ".•·∙●⋅":
            sign += "."
        elif c in "-–—−_‐‑▬":
            sign += "-"
        elif c in "/|,;\"'`*()… \n" or not _FIELD.match(c):
            flush()
        else:
            other = True
    flush()
    return runs.text


def _radio(found):
    runs = _Runs()
    for w in found:
        if w in _NATO:
            runs.add(w[0])
        elif w == "ray":
            runs.add("x")
        elif not (w in _FILLERS or len(w) == 1 or w in ("as", "in", "for", "like", "is")):
            runs.end()
    return runs.text


def _as_in(found):
    if not {"for", "in", "like"} & set(found):
        return ""
    return "".join(_AS_IN.findall(" ".join(found)))


def _unhump(text):
    out, small = [], False
    for c in text:
        kind = unicodedata.category(c)
        if small and kind == "Lu":
            out.append(" ")
        out.append(c)
        small = kind == "Ll"
    return "".join(out)


def _initial(text):
    return next((_look(c) for c in text if _is_letter(c)), "")


def _initials(texts):
    return "".join(map(_initial, texts))


def _leet(text):
    if not re.search(r"[0-9@$!|]", text):
        return []
    found, word = [], ""
    for c in text + " ":
        if _is_letter(c) or unicodedata.category(c) == "Nd" or c in "@$!|":
            word += c
        elif word:
            found.append(word.rstrip("!"))
            word = ""
    if text.isascii() and not any(map(_is_leet, found)):
        return []
    tables = [str.maketrans("01!|34@5$78", f"o{one}{one}{one}eaasstb") for one in "il"]
    return [look_words(" ".join(w.translate(table) if _is_leet(w) else w for w in found)) for table in tables]


def _is_leet(word):
    return re.search(r"[0134578@$!|]", word) is not None and any(map(_is_letter, word))


def _from_base64(text):
    out = []

    def add(t):
        if len(t) % 4 == 1:
            t = t[:-1]
        if len(t) < 4:
            return
        try:
            data = base64.b64decode(t.replace("-", "+").replace("_", "/") + "=" * (-len(t) % 4))
            decoded = data.decode()
        except (binascii.Error, UnicodeDecodeError):
            return
        if len(data) > 2:
            out.append(Message(decoded, plain=True))

    for t in re.findall(r"[0-9A-Za-z+/_-]+", text):
        add(t)
        parts = re.findall(r"[^+/_-]+", t)
        if len(parts) > 1:
            for p in parts:
                add(p)
    return out


def _from_hex(text):
    out = []
    for run in _HEX.finditer(text):
        data = bytes.fromhex("".join(_PAIR.findall(run[0])))
        out.append(Message(data.decode("utf-8", "replace"), plain=True))
    return out


def _number(figures, base):
    n = int(figures, base) if len(figures) <= 8 else 256
    return n if n <= 255 else 0


def _printable(n):
    return chr(n) if 32 <= n <= 126 else " "


def _bit_runs(text):
    """List what the pattern \\b[01]{7,8}(?:[\\s,;|-]*[01]{7,8})*\\b matches, in linear time."""
    if not re.search("[01]{7}", text):
        return []
    size = len(text)
    word = [c.isascii() and (c.isalnum() or c == "_") for c in text] + [False]
    bit = [c in "01" for c in text] + [False]
    length = [0] * (size + 1)  # ones and zeros from here on
    skip = list(range(size + 1))  # the place after the separators from here on
    for p in range(size - 1, -1, -1):
        length[p] = length[p + 1] + 1 if bit[p] else 0
        skip[p] = skip[p + 1] if text[p] in "\t\n\f\r ,;|-" else p
    ends = [-1] * (size + 9)
    for p in range(size, 0, -1):
        q = skip[p]
        for n in (8, 7):
            if length[q] >= n and ends[q + n] >= 0:
                ends[p] = ends[q + n]
                break
        else:
            if word[p - 1] != word[p]:
                ends[p] = p
    out, p = [], 0
    while p < size:
        end = -1
        if bit[p] and not (p and word[p - 1]):
            end = next((ends[p + n] for n in (8, 7) if length[p] >= n and ends[p + n] >= 0), -1)
        if end >= 0:
            out.append(text[p:end])
            p = end
        else:
            p += 1
    return out


class Message:
    """A text, read once for any number of listeners. A plain one is only searched for a secret that is written openly."""

    def __init__(self, text, plain=False):
        self.words = words(text)
        self.look = self.words if text.isascii() else look_words(text)
        apart = _unhump(text)
        self.parts = words(apart) if apart != text else self.words
        self.spelled = _letter_runs(self.look)
        if plain:
            return
        self.fields = _fields_of(text)
        self.acrostics = [(parts, _initials(parts)) for parts in (text.split("\n"), [s for s in re.split("[.!?…\n]", text) if s])]
        self.initials = _initials(self.look)
        self.morse, self.radio, self.as_in = _morse(text), _radio(self.look), _as_in(self.look)
        self.base64, self.leet = _from_base64(text), _leet(text)
        self.hex, self.bytes, self.numbers = [], [], []
        if re.search("[0-9]", text):
            self.hex = _from_hex(text)
            runs = [re.findall(r"[0-9]+", run[0]) for run in _COUNT.finditer(text)]
            bits = [re.findall("[01]{7,8}", run) for run in _bit_runs(text)]
            made = ["".join(_printable(_number(f, base)) for f in run) for found, base in ((runs, 10), (bits, 2)) for run in found]
            self.bytes = [Message(m, plain=True) for m in made]
            self.numbers = ["".join(chr(96 + _number(f, 10)) if 1 <= _number(f, 10) <= 26 else " " for f in run) for run in runs]


def _fields_of(text):
    parts = fields(text)
    return [(*_piece(p, len(parts) == 1), len(p.encode()), p in ("a", "I", "i")) for p in parts]


def _piece(part, alone):
    """Return the letters or the word of a field."""
    bare = part[:-1] if len(part) > 2 and part[-1] in ".,;:!?" else part
    if not alone and len(bare) > 1 and re.fullmatch("[a-z]+", bare) and bare not in _FILLERS:
        return "", ""
    found = look_words(part)
    letters = "".join(w for w in found if len(w) == 1)
    if not found:
        return "", " "
    if len(letters) == len(found):
        return letters, ""
    if len(found) > 1:
        return "", ""
    if found[0] in _FILLERS:
        return "", " "
    capitals = not any(unicodedata.category(c) in ("Ll", "Lo") for c in part)
    return "", found[0] if _marked(part) or capitals or alone else ""


def _marked(part):
    quotes = "\"'`“”‘’«»*_-…"
    trimmed = part.rstrip(".,;:!?")
    return part[0] in quotes or (trimmed != "" and trimmed[-1] in quotes) or part.startswith("...") or part.endswith("...")


def _within(found, part):
    return bool(part) and any(found[i : i + len(part)] == part for i in range(len(found) - len(part) + 1))


def _among(found, secret):
    return _within(found, secret) or len(secret) > 1 and "".join(secret) in found


class Secret:
    """A word or phrase to listen for."""

    def __init__(self, secret, forms):
        self.words, self.look, self.dense = words(secret), look_words(secret), unspaced(secret)
        self.letter = "".join(self.look)
        self.size, self.bytes = len(self.letter), len(self.letter.encode())
        core = [w for w in self.words if w not in _SMALL]
        self.core = core if 0 < len(core) < len(self.words) else None
        self.back, self.back_letter = fields(" ".join(self.look)[::-1]), self.letter[::-1]
        table = str.maketrans("abcdefghijklmnopqrstuvwxyz", "zyxwvutsrqponmlkjihgfedcba")
        self.mirror, self.mirror_letter = [w.translate(table) for w in self.look], self.letter.translate(table)
        self.checks = [(f, getattr(Listener, "_" + f)) for f in FORMS if f in forms]


class Listener:
    """Checks the messages of one player in one conversation for a secret."""

    def __init__(self, secret):
        self.s, self.pieces, self.lasts, self.message = secret, [], [], 0

    def hear(self, m):
        """Check the next message and return the form in which it gives the secret away, or ""."""
        self._gather(m)
        if self.s.size == 0:
            return ""
        return next((form for form, find in self.s.checks if find(self, m)), "")

    def _said(self, m):
        if self.s.dense:
            return "".join(self.s.words) in "".join(m.words)
        return _among(m.words, self.s.words) or _among(m.parts, self.s.words)

    def _partial(self, m):
        return self._ending(m) or self._phrase(m)

    def _ending(self, m):
        s = self.s
        if len(s.words) != 1 or s.dense or s.size < 4:
            return False
        endings = ["s", "es", "d", "ed", "ing", "ish", "ist", "ists", "ic", "y", "er", "ers", "like"] if s.size >= 6 else ["s", "es"]
        w = s.words[0]
        for word in m.words:
            if word.startswith(w):
                if word[len(w) :] in endings:
                    return True
            elif w.endswith("y") and word == w[:-1] + "ies":
                return True
        return False

    def _phrase(self, m):
        s = self.s
        return s.core is not None and _within([w for w in m.words if not (w in _SMALL and w in s.words)], s.core)

    def _lookalike(self, m):
        return _among(m.look, self.s.look) or any(_among(found, self.s.look) for found in m.leet)

    def _spelled(self, m):
        return self.s.letter in m.spelled

    def _split(self, m):
        if self.s.size < 5 or self.s.dense:
            return False
        return self._joins(m.look) or self._continued(self.pieces) or self._continued(self.lasts)

    def _joins(self, found):
        letter = self.s.letter
        for i, first in enumerate(found):
            if not letter.startswith(first) or first in (letter, "a", "i"):
                continue
            rest = letter[len(first) :]
            for w in found[i + 1 :]:
                if not rest.startswith(w):
                    break
                rest = rest[len(w) :]
                if not rest:
                    return w not in ("a", "i")
        return False

    def _continued(self, pieces):
        end = len(pieces)
        while end > 0 and pieces[end - 1][1] == self.message:
            rest = self.s.letter
            for text, message in reversed(pieces[:end]):
                if not rest.endswith(text):
                    break
                rest = rest[: len(rest) - len(text)]
                if not rest and message < self.message:
                    return True
            end -= 1
        return False

    def _gather(self, m):
        self.message += 1
        if m.look:
            self._keep(self.lasts, m.look[-1])
        run = ""
        for letters, word, size, article in m.fields:
            if size > 4 * self.s.bytes + 8:
                letters, word = "", ""
            if letters and (run or not article):
                run += letters
            elif letters or word == " ":
                continue
            else:
                if run:
                    self._keep(self.pieces, run)
                run = ""
                if word:
                    self._keep(self.pieces, word)
        if run:
            self._keep(self.pieces, run)

    def _keep(self, pieces, text):
        if not text or len(text.encode()) > self.s.bytes:
            text = " "
        if len(pieces) == 500:
            del pieces[:250]
        pieces.append((text, self.message))

    def _reversed(self, m):
        s = self.s
        if s.back_letter == s.letter or s.size < 5 and not any(w.startswith(("backward", "revers", "mirror")) for w in m.words):
            return False
        return s.back_letter in m.look or s.back_letter in m.spelled or _within(m.look, s.back)

    def _decoded(self, texts):
        return any(self._said(m) or self._partial(m) or self._spelled(m) for m in texts)

    def _base64(self, m):
        return self._decoded(m.base64)

    def _hex(self, m):
        return self._decoded(m.hex)

    def _bytes(self, m):
        return self._decoded(m.bytes)

    def _rot13(self, m):
        return self.s.size >= 4 and _ciphered(m, self.s.look, self.s.letter, lambda by: by == 13)

    def _cipher(self, m):
        s = self.s
        return (s.size >= 6 and _ciphered(m, s.look, s.letter, lambda by: by not in (0, 13))) or (
            s.size >= 5 and _ciphered(m, s.mirror, s.mirror_letter, lambda by: by == 0)
        )

    def _morse(self, m):
        return self.s.letter in m.morse

    def _nato(self, m):
        return self.s.letter in m.radio or self.s.letter in m.as_in

    def _numbers(self, m):
        return any(self.s.letter in run for run in m.numbers)

    def _acrostic(self, m):
        s = self.s
        if s.size < 4:
            return False
        for parts, initials in m.acrostics:
            if s.letter in initials or any(_initial(p) == s.letter[0] and _initials(look_words(p)) == s.letter for p in parts):
                return True
        return s.size >= 7 and s.letter in m.initials


def _ciphered(m, secret, letters, good):
    """Report whether a message has the secret with all letters shifted by a number that good accepts."""
    look, parts = m.look, [w.encode() for w in secret]
    for i in range(len(look) - len(secret) + 1):
        by, ok = -1, True
        for k, part in enumerate(parts):
            by, ok = _shifted(look[i + k].encode(), part, by)
            if not ok:
                break
        if ok and by >= 0 and good(by):
            return True
    spelled, part = m.spelled.encode(), letters.encode()
    for i in range(len(spelled) - len(part) + 1):
        by, ok = _shifted(spelled[i : i + len(part)], part, -1)
        if ok and by >= 0 and good(by):
            return True
    return False


def _shifted(word, plain, by):
    if len(word) != len(plain):
        return by, False
    for c, p in zip(word, plain):
        if not 97 <= p <= 122:
            if c != p:
                return by, False
            continue
        if not 97 <= c <= 122:
            return by, False
        n = (c - p) % 26
        if 0 <= by != n:
            return by, False
        by = n
    return by, True
