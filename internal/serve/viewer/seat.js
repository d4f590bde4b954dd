// Connects the picture of a question with its choices, and shows how much time is left. Links of seats are shown whole,
// so that they can be copied.
for (const link of document.querySelectorAll("a[data-seat]")) link.textContent = link.href;

const choose = (at) => {
  for (const p of document.querySelectorAll(".seat-choices p")) {
    const here = p.dataset.for === at;
    p.classList.toggle("seat-chosen", here);
    if (here) {
      p.scrollIntoView({ block: "nearest" });
      p.querySelector("select").focus();
    }
  }
};

const place = (event) => event.target.closest?.(".seat-picture [data-at]");

const prepare = () => {
  for (const spot of document.querySelectorAll(".seat-picture [data-at]")) {
    spot.setAttribute("tabindex", "0");
    spot.setAttribute("role", "button");
    spot.setAttribute("aria-label", spot.querySelector("title")?.textContent ?? spot.dataset.at);
  }
};

addEventListener("click", (event) => {
  const spot = place(event);
  if (spot) choose(spot.dataset.at);
});
addEventListener("keydown", (event) => {
  const spot = place(event);
  if (spot && (event.key === "Enter" || event.key === " ")) {
    event.preventDefault();
    choose(spot.dataset.at);
  }
});
addEventListener("parley:replaced", prepare);
prepare();

const clock = document.getElementById("seat-clock");
const tick = () => {
  if (!clock) return;
  const deadline = document.querySelector("time[data-deadline]");
  clock.hidden = !deadline;
  if (!deadline) return;
  const left = Math.max(0, Math.round((new Date(deadline.dateTime) - Date.now()) / 1000));
  clock.textContent = left ? `${Math.floor(left / 60)} min ${left % 60} s left` : "The time is over.";
};
setInterval(tick, 1000);
tick();
