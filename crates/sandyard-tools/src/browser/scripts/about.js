// What is there to tell about the page.
function () {
  const top = document.scrollingElement || document.documentElement;
  const entry = performance.getEntriesByType("navigation")[0];
  return {
    url: location.href,
    title: document.title,
    down: Math.round(scrollY),
    right: Math.round(scrollX),
    height: top ? top.scrollHeight : 0,
    width: top ? top.scrollWidth : 0,
    status: (entry && entry.responseStatus) || 0,
  };
}
