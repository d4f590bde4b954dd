"use strict";
// Filters, sorting, replays, tips and the choice of dark or light. The page can be read
// without any of it.
(() => {
  const all = (sel, root = document) => [...root.querySelectorAll(sel)];

  const wire = (root) => {
    for (const input of all("[data-filter]", root)) {
      const table = document.getElementById(input.dataset.filter);
      const rows = all("tbody tr:not(.group)", table);
      const words = rows.map((r) => r.textContent.toLowerCase());
      const out = input.closest(".filter").querySelector("output");
      input.addEventListener("input", () => {
        const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
        let shown = 0;
        rows.forEach((row, i) => {
          row.hidden = !wanted.every((w) => words[i].includes(w));
          if (!row.hidden) shown++;
        });
        out.textContent = shown === rows.length ? rows.length + " rows" : shown + " of " + rows.length + " rows";
      });
    }

    for (const button of all(".sort", root)) {
      button.addEventListener("click", () => {
        const head = button.closest("tr");
        const table = button.closest("table");
        const at = [...head.children].indexOf(button.closest("th"));
        const cell = button.closest("th");
        const up = cell.getAttribute("aria-sort") === "descending";
        all("th", head).forEach((h) => h.removeAttribute("aria-sort"));
        cell.setAttribute("aria-sort", up ? "ascending" : "descending");
        const value = (row) => {
          const cell = row.children[at];
          return cell.dataset.sort ? Number(cell.dataset.sort) : cell.textContent;
        };
        for (const body of table.tBodies) {
          const rows = all("tr:not(.group)", body).sort((a, b) => {
            const x = value(a), y = value(b);
            const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
            return up ? order : -order;
          });
          body.append(...rows);
        }
      });
    }

    for (const replay of all(".replay", root)) {
      const range = replay.querySelector("input");
      const out = replay.querySelector("output");
      const frames = all("[data-frame]", replay).map((part) => [part, part.parentElement]);
      const show = () => { // only one frame is in the page: a long game has thousands of elements
        for (const [part, place] of frames) {
          if (part.dataset.frame === range.value) place.append(part);
          else part.remove();
        }
        const title = replay.querySelector("section h4");
        out.textContent = range.value + " of " + range.max + (title ? ": " + title.textContent : "");
        for (const b of all("[data-step]", replay)) { // not disabled: that would take the focus from who uses the keyboard
          b.setAttribute("aria-disabled", range.value === (Number(b.dataset.step) < 0 ? range.min : range.max));
        }
      };
      // A page shows the frame of a phase by its title, or else of a turn: the last one of its strand, or of the turn that forked it.
      const moments = frames.filter(([part]) => part.matches("section")).map(([part]) => {
        const turn = part.dataset.turn ?? "", at = turn.lastIndexOf("/") + 1;
        return { frame: part.dataset.frame, title: part.querySelector("h4")?.textContent, strand: turn.slice(0, at), number: parseInt(turn.slice(at)), main: parseInt(turn) };
      });
      // It shows what is read beside it, until somebody steps through it.
      const follow = replay.querySelector("[data-follow]");
      let own = false, latest;
      const free = (yes) => {
        own = yes;
        if (latest) follow.hidden = !own;
      };
      const turned = (e) => {
        if (own) return;
        const { phase, turn } = e.detail, at = turn.lastIndexOf("/") + 1, strand = turn.slice(0, at), number = parseInt(turn.slice(at)), main = parseInt(turn);
        const last = moments.findLast((m) => m.strand === strand && m.number <= number) ?? moments.findLast((m) => m.main <= main);
        const to = moments.find((m) => phase && m.title === phase) ?? moments.find((m) => last && m.strand === last.strand && m.number === last.number); // several frames can be of one turn
        if (to && to.frame !== range.value) { range.value = to.frame; show(); }
      };
      replay.addEventListener("parley:turn", (e) => { latest = e; free(own); turned(e); });
      follow.addEventListener("click", () => { free(false); turned(latest); });
      const step = (by) => {
        range.value = Number(range.value) + by;
        free(true);
        show();
      };
      range.addEventListener("input", () => { free(true); show(); });
      const named = () => { // an address can name a frame by its title
        let title;
        try { title = location.hash.startsWith("#frame=") && decodeURIComponent(location.hash.slice(7)); } catch { return; } // a broken escape
        const to = title && moments.find((m) => m.title === title);
        if (to) { range.value = to.frame; free(true); show(); }
      };
      addEventListener("hashchange", named);
      for (const b of all("[data-step]", replay)) b.addEventListener("click", () => step(Number(b.dataset.step)));
      replay.addEventListener("keydown", (e) => {
        if (e.target === range) return;
        if (e.key === "ArrowLeft") step(-1);
        else if (e.key === "ArrowRight") step(1);
      });
      show();
      named();
    }
  };
  wire(document);
  document.addEventListener("parley:replaced", (e) => wire(e.target)); // a live page replaced a part

  const tip = document.getElementById("tip");
  document.addEventListener("pointerover", (e) => {
    const on = e.target.closest("[data-tip]");
    tip.hidden = !on;
    if (on) tip.textContent = on.dataset.tip;
  });
  document.addEventListener("pointermove", (e) => {
    if (tip.hidden) return;
    tip.style.left = Math.max(4, Math.min(e.clientX + 12, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, e.clientY - tip.offsetHeight - 10) + "px";
  });

  document.addEventListener("focusin", (e) => { // what a mouse shows as a tip
    const words = e.target.title || e.target.dataset?.tip;
    tip.hidden = !words;
    if (!words) return;
    const at = e.target.getBoundingClientRect();
    tip.textContent = words;
    tip.style.left = Math.max(4, Math.min(at.left, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, at.bottom + 6) + "px";
  });

  const open = () => {
    const to = location.hash && document.getElementById(location.hash.slice(1));
    if (to && to.matches("details")) to.open = true;
  };
  addEventListener("hashchange", open);
  open();

  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = getComputedStyle(root).colorScheme === "dark" ||
      (getComputedStyle(root).colorScheme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
    root.style.colorScheme = dark ? "light" : "dark";
  });
})();
