"use strict";
// Exchanges the key in the address for a cookie.
(async () => {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!key) return;
  const answer = await fetch("/session", { method: "POST", body: key });
  if (!answer.ok) {
    document.getElementById("problem").hidden = false;
    return;
  }
  history.replaceState(null, "", location.pathname + location.search);
  location.reload();
})();
