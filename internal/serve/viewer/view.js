"use strict";
// Keeps the page current: when its run has grown, the parts marked data-live are fetched again.
// Also keys: j and k go to the next and previous page, / goes to the first field, Escape goes back from a question.
(() => {
  const policy = self.trustedTypes ? trustedTypes.createPolicy("parley", { createHTML: (s) => s }) : { createHTML: (s) => s };
  const live = document.getElementById("live");
  const say = (text, lost) => {
    live.hidden = !text;
    live.textContent = text;
    live.classList.toggle("lost", lost);
  };

  // busy reports whether somebody works in an element, so that it must not be replaced: a button that is replaced
  // while it is pressed does nothing.
  const busy = (part) => {
    const selected = getSelection();
    return part.contains(document.activeElement) && document.activeElement.matches("input, select, textarea") ||
      !selected.isCollapsed && part.contains(selected.anchorNode) || part.matches(":active, :has(:active)");
  };

  // keep copies what a person opened, moved or typed in a part to the part that replaces it.
  const keep = (from, to) => {
    const were = from.querySelectorAll("details"), are = to.querySelectorAll("details");
    were.forEach((d, i) => {
      const same = d.id ? to.querySelector("#" + CSS.escape(d.id)) : are[i];
      if (same) same.open = d.open;
    });
    const typed = "input:not([type=range], [type=hidden], [type=checkbox])";
    const fields = from.querySelectorAll(typed), fresh = to.querySelectorAll(typed);
    fields.forEach((f, i) => { if (fresh[i]?.name === f.name && f.value !== f.defaultValue) fresh[i].value = f.value; });
    for (const box of from.querySelectorAll("input[type=checkbox]:checked")) {
      for (const now of to.querySelectorAll("input[type=checkbox]")) now.checked ||= now.name === box.name && now.value === box.value;
    }
    const ranges = from.querySelectorAll("input[type=range]"), now = to.querySelectorAll("input[type=range]");
    ranges.forEach((r, i) => { if (now[i] && r.value !== r.max) now[i].value = r.value; else if (now[i] && r.value !== "1") now[i].value = now[i].max; });
  };

  const style = (d) => [...d.querySelectorAll("head style")].map((s) => s.textContent).join();

  // replace puts a part in the place of another. The focus stays where it is for whoever uses the keyboard.
  const replace = (from, to) => {
    keep(from, to);
    const had = document.activeElement, name = (e) => [e.tagName, e.id, e.name, e.value, e.getAttribute("href"), e.getAttribute("aria-label")].join();
    const alike = (part) => [...part.querySelectorAll("a[href], button, summary, [tabindex]")].filter((e) => name(e) === name(had));
    from.before(document.adoptNode(to));
    alike(to)[alike(from).indexOf(had)]?.focus({ preventScroll: true });
    from.remove();
  };

  // What the server sent of each live part. A script may have changed the part since.
  const sent = new WeakMap([...document.querySelectorAll("[data-live]")].map((part) => [part, part.innerHTML]));

  // load replaces a part by what takes long to make, which is at the address that link has; and by link if that fails.
  const load = async (part, link) => {
    try {
      const answer = await fetch(link.dataset.load, { headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(policy.createHTML(await answer.text()), "text/html");
      const next = page.getElementById(part.id);
      if (!answer.ok || !next) throw new Error("there is no such part");
      if (!part.isConnected) return;
      if (style(page) !== style(document)) return location.replace(link.dataset.load); // its drawings need another style sheet
      next.removeAttribute("data-live"); // it is loaded once
      replace(part, next);
      next.dispatchEvent(new Event("parley:replaced", { bubbles: true }));
    } catch {
      if (part !== link && part.isConnected) replace(part, link);
    }
  };

  let wanted = false, fetching = false, broken = false, tag = "";
  const refresh = async () => {
    wanted = true;
    if (fetching || document.hidden) return;
    fetching = true;
    delete document.body.dataset.current; // data-current: the page shows what the server has
    try {
      while (wanted) {
        wanted = false;
        const began = performance.now();
        const answer = await fetch(location.href, { headers: { Accept: "text/html", "If-None-Match": tag } });
        const same = answer.status === 304;
        if (!answer.ok && !same) {
          say(answer.status === 404 ? "the run file is gone: it was moved or deleted" : "this page could not be made again", true);
          broken = true;
          break;
        }
        if (broken) say("following", false);
        broken = false;
        const page = same ? undefined : new DOMParser().parseFromString(policy.createHTML(await answer.text()), "text/html");
        if (page && style(page) !== style(document)) return location.reload(); // its drawings need another style sheet
        let skipped = false;
        for (const part of page ? document.querySelectorAll("[data-live]") : []) {
          const next = page.getElementById(part.id);
          const text = next?.innerHTML;
          if (!next || text === sent.get(part)) continue;
          if (busy(part)) {
            skipped = true;
            continue;
          }
          if (next.dataset.load) { // the episode has ended: what is shown stays until all of it is there
            sent.set(part, text);
            load(part, next);
            continue;
          }
          replace(part, next);
          sent.set(next, text);
          next.dispatchEvent(new Event("parley:replaced", { bubbles: true }));
          for (const f of next.querySelectorAll("[data-filter]")) if (f.value) f.dispatchEvent(new Event("input"));
        }
        if (page) tag = skipped ? "" : answer.headers.get("ETag") ?? "";
        // A page that is open all day should cost little, and less if the machine is busy.
        const pause = Math.min(2000, Math.max(700, 3 * (performance.now() - began)));
        await new Promise((done) => setTimeout(done, pause));
        wanted ||= document.querySelector("[data-live] [data-again]") !== null;
      }
      if (!broken) document.body.dataset.current = "";
    } catch {
      say("the server cannot be reached", true);
    } finally {
      fetching = false;
    }
  };

  // What takes long to make is loaded when the page is there.
  const late = document.querySelector("[data-load]");
  if (late) load(late, late);

  const events = document.body.dataset.events;
  if (events) {
    // A browser allows few connections to a server, so only pages that are seen have one.
    let source;
    const follow = () => {
      if (source) source.close();
      source = document.hidden ? undefined : new EventSource(events);
      if (!source) return;
      source.addEventListener("open", () => { say("following", false); refresh(); });
      source.addEventListener("grown", refresh);
      source.addEventListener("error", () => {
        if (source.readyState !== EventSource.CLOSED) return say("the server cannot be reached", true);
        refresh(); // the server refuses: the page says why
        setTimeout(follow, 3000); // a browser does not try again by itself
      });
    };
    document.addEventListener("visibilitychange", follow);
    follow();
  }

  // The words of a query are completed one after the other.
  for (const field of document.querySelectorAll("[data-words]")) {
    const words = [...field.list.options].map((o) => o.value);
    field.addEventListener("input", () => {
      const before = field.value.slice(0, field.value.search(/[^ "]*("[^"]*"?)?$/));
      field.list.replaceChildren(...words.map((w) => Object.assign(document.createElement("option"), { value: before + w })));
    });
  }

  for (const field of document.querySelectorAll("[data-remember]")) { // a name that a person types once
    const key = "parley-" + field.dataset.remember;
    try { field.value ||= localStorage.getItem(key) ?? ""; } catch { /* the browser keeps nothing */ }
    field.form.addEventListener("submit", () => { try { localStorage.setItem(key, field.value); } catch { /* as above */ } });
  }

  // What stands beside the text shows the turn that is read: boards and other replays their frame of it, charts where it is. The rail marks
  // its phase.
  let shown = "";
  const read = () => {
    const lines = [...document.querySelectorAll("#said [data-turn]")];
    const at = lines.findLast((l) => l.getBoundingClientRect().top < innerHeight / 3) ?? lines[0];
    if (!at) return;
    const turn = at.dataset.turn, phase = lines.slice(0, lines.indexOf(at) + 1).findLast((l) => l.matches(".phase"));
    for (const a of document.querySelectorAll(".rail a")) a.setAttribute("aria-current", a.hash === "#" + phase?.id);
    for (const now of document.querySelectorAll("#story .now")) {
      const [left, right, low, high] = now.dataset.at.split(" ").map(Number), x = left + (right - left) * (parseInt(turn) - low) / (high - low) + "%";
      now.setAttribute("x1", x);
      now.setAttribute("x2", x);
      now.removeAttribute("visibility");
    }
    if (shown === turn + phase?.id) return; // who steps through a replay may go on
    shown = turn + phase?.id;
    const detail = { turn, phase: phase?.querySelector("bdi").textContent };
    for (const replay of document.querySelectorAll("#story .replay")) replay.dispatchEvent(new CustomEvent("parley:turn", { detail }));
  };
  if (document.getElementById("said")) {
    document.addEventListener("scroll", read, { passive: true });
    document.addEventListener("DOMContentLoaded", read); // replays are ready
    document.addEventListener("parley:replaced", (e) => {
      if (!("live" in e.target.dataset)) shown = ""; // the story is there now
      queueMicrotask(read);
    });
  }

  const follow = (rel) => {
    const to = document.querySelector(`main a[rel="${rel}"]`);
    if (to) to.click();
  };
  addEventListener("keydown", (e) => {
    if (e.key === "Escape") document.querySelector("a[data-escape]")?.click();
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, select, textarea")) return;
    if (e.key === "j") follow("next");
    else if (e.key === "k") follow("prev");
    else if (e.key === "/") {
      const field = document.querySelector("main input[type=search]");
      if (field) { e.preventDefault(); field.focus(); }
    }
  });
})();
