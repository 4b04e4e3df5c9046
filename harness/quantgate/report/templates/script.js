"use strict";
(() => {
  const details = [...document.querySelectorAll("details")];
  const flips = [...document.querySelectorAll("#flips details.flip")];
  const filter = document.getElementById("flip-filter");
  const counter = document.getElementById("flip-count");
  const toggle = document.getElementById("toggle-details");
  const copy = document.getElementById("copy-command");

  // The tools need this script, so they appear only where it runs.
  if (flips.length) filter.closest(".tools").hidden = false;

  filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase();
    let shown = 0;
    for (const flip of flips) {
      flip.hidden = !flip.textContent.toLowerCase().includes(wanted);
      shown += flip.hidden ? 0 : 1;
    }
    counter.textContent = wanted ? `${shown} of ${flips.length} items` : "";
  });

  toggle.addEventListener("click", () => {
    const open = flips.some((flip) => !flip.open);
    for (const flip of flips) flip.open = open;
    toggle.textContent = open ? "Close all" : "Open all";
  });

  if (navigator.clipboard) {
    copy.closest(".tools").hidden = false;
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById("command").textContent);
      copy.textContent = "Copied";
    });
  }

  // Paper cannot be opened: everything that is folded is printed.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = details.filter((entry) => !entry.open);
    for (const entry of folded) entry.open = true;
  });
  addEventListener("afterprint", () => {
    for (const entry of folded) entry.open = false;
  });
})();
