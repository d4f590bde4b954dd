"use strict";
// Exchanges the key in the address for a cookie.
(async () => {
  const [, key] = location.hash.split("#key=");
  const show = (id) => { document.getElementById(id).hidden = false; };
  if (!key) {
    // A link on another site leads here without the cookie, and a link on this page does not.
    if (!sessionStorage.getItem("tried")) {
      sessionStorage.setItem("tried", "1");
      location.replace(location.href);
      return;
    }
    show("needed");
    return;
  }
  let sent = key;
  try { sent = decodeURIComponent(key); } catch { /* it is not encoded */ }
  const answer = await fetch("/session?page=" + encodeURIComponent(location.pathname), { method: "POST", body: sent });
  if (!answer.ok) {
    show("problem");
    return;
  }
  sessionStorage.removeItem("tried");
  history.replaceState(null, "", location.pathname + location.search);
  location.reload();
})();
