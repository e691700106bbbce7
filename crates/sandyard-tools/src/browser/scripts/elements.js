// Finds what can be used in the part of the page that is seen, remembers it by number and draws the numbers over it.
function (most, life) {
  const kinds = [
    "a[href]", "button", "input:not([type=hidden])", "select", "textarea", "summary", "option", "video[controls]",
    "audio[controls]", "[contenteditable='']", "[contenteditable=true]", "[onclick]", "[tabindex]:not([tabindex='-1'])",
    "[role=button]", "[role=link]", "[role=checkbox]", "[role=radio]", "[role=tab]", "[role=menuitem]", "[role=option]",
    "[role=switch]", "[role=combobox]", "[role=textbox]", "[role=slider]", "[role=searchbox]", "[role=treeitem]",
  ].join(",");
  const width = innerWidth;
  const height = innerHeight;
  const found = [];
  const elements = [];
  let remainingElements = 30000;
  let more = false;

  const describe = (element) => {
    const label = element.labels && element.labels[0] ? element.labels[0].innerText : "";
    const typed = element.type === "password" ? "" : element.value;
    const value = ["INPUT", "TEXTAREA", "SELECT"].includes(element.tagName) ? typed : "";
    const chosen = element.tagName === "SELECT" && element.selectedOptions[0] ? element.selectedOptions[0].text : value;
    const own = element.tagName === "SELECT" || element.tagName === "TEXTAREA" ? "" : element.innerText;
    const text = element.getAttribute("aria-label") || label || own || element.getAttribute("placeholder")
      || element.getAttribute("title") || element.getAttribute("alt") || element.getAttribute("name") || "";
    return { text: String(text).slice(0, 200), value: String(chosen || "").slice(0, 200) };
  };
  const usable = (element, view) => {
    if (element.matches(kinds)) return true;
    if (view.getComputedStyle(element).cursor !== "pointer") return false;
    const parent = element.parentElement;
    return !parent || view.getComputedStyle(parent).cursor !== "pointer";
  };
  const walk = (root, view, left, top, clip, depth) => {
    for (const element of root.querySelectorAll("*")) {
      if (remainingElements-- <= 0 || found.length >= most) { more = true; return; }
      const box = element.getBoundingClientRect();
      const x1 = Math.max(box.left + left, clip[0]);
      const y1 = Math.max(box.top + top, clip[1]);
      const x2 = Math.min(box.right + left, clip[2]);
      const y2 = Math.min(box.bottom + top, clip[3]);
      const inside = x2 - x1 >= 1 && y2 - y1 >= 1;
      if (element.shadowRoot && depth < 8) walk(element.shadowRoot, view, left, top, clip, depth + 1);
      if (!inside) continue;
      if ((element.tagName === "IFRAME" || element.tagName === "FRAME") && depth < 8) {
        let inner = null;
        try { inner = element.contentDocument; } catch { /* another origin's */ }
        if (inner) {
          const x = box.left + left + element.clientLeft;
          const y = box.top + top + element.clientTop;
          walk(inner, element.contentWindow, x, y, [x1, y1, x2, y2], depth + 1);
        }
        continue;
      }
      if (!usable(element, view)) continue;
      const style = view.getComputedStyle(element);
      if (style.visibility !== "visible" || style.pointerEvents === "none") continue;
      const x = (x1 + x2) / 2;
      const y = (y1 + y2) / 2;
      const hit = root.elementFromPoint(x - left, y - top);
      const covered = hit && hit !== element && !element.contains(hit) && !hit.contains(element)
        && !(hit.shadowRoot && hit.shadowRoot.contains(element)) && !(hit.control === element);
      if (covered) continue;
      const { text, value } = describe(element);
      elements.push({
        tag: element.tagName.toLowerCase(),
        kind: element.getAttribute("role") || (element.tagName === "INPUT" ? element.type : "") || "",
        text, value,
        off: Boolean(element.disabled),
        on: Boolean(element.checked),
        x: Math.round(x), y: Math.round(y),
        box: [x1, y1, x2 - x1, y2 - y1],
      });
      found.push(element);
    }
  };
  walk(document, window, 0, 0, [0, 0, width, height], 0);
  globalThis.sandyardFound = found;

  if (globalThis.sandyardOverlay) globalThis.sandyardOverlay.remove();
  const overlay = document.createElement("div");
  globalThis.sandyardOverlay = overlay;
  const paint = (element, style) => Object.assign(element.style, style);
  paint(overlay, {
    all: "initial", position: "fixed", inset: "0", width: "100vw", height: "100vh", margin: "0", padding: "0", border: "0",
    background: "transparent", overflow: "hidden", pointerEvents: "none", zIndex: "2147483647",
  });
  const inner = overlay.attachShadow({ mode: "closed" });
  const colours = ["#d32f2f", "#1565c0", "#2e7d32", "#6a1b9a", "#ad5c00", "#00695c"];
  elements.forEach((item, number) => {
    const colour = colours[number % colours.length];
    const frame = document.createElement("div");
    paint(frame, {
      position: "absolute", boxSizing: "border-box", left: item.box[0] + "px", top: item.box[1] + "px",
      width: item.box[2] + "px", height: item.box[3] + "px", border: "2px solid " + colour,
    });
    const label = document.createElement("div");
    label.textContent = String(number);
    paint(label, {
      position: "absolute", left: Math.max(0, item.box[0]) + "px", top: Math.max(0, item.box[1] - 14) + "px",
      font: "bold 12px/14px sans-serif", padding: "0 3px", color: "#ffffff", background: colour,
    });
    inner.append(frame, label);
    delete item.box;
  });
  document.documentElement.append(overlay);
  try {
    // Above dialogs of the page too.
    overlay.popover = "manual";
    overlay.showPopover();
  } catch { /* it is seen without that on most pages */ }
  setTimeout(() => overlay.remove(), life);
  return { elements, more };
}
