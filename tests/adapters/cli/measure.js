// Appended to a copy of the page of `who --html`: writes what a reader would see, as JSON, into an <output>.
"use strict";
(() => {
  const numbers = (text) => text.match(/[\d.]+/g).map(Number);
  // WCAG 2.2: relative luminance, and the ratio of a text's to that of the first opaque ground behind it.
  const linear = (each) => (each <= 10.31 ? each / 3294.6 : ((each / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (each) => {
    const [r, g, b, a = 1] = numbers(getComputedStyle(each).backgroundColor);
    return a === 1 || !each.parentElement ? [r, g, b] : ground(each.parentElement);
  };
  const contrast = (each) => {
    const both = [luminance(numbers(getComputedStyle(each).color)), luminance(ground(each))];
    return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
  };
  const sign = (each) => getComputedStyle(each, "::before").content;
  const all = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.offsetWidth);
  const cells = all("td[data-word]");
  const texts = all("h1, p, th, td, td small, button, .legend span, footer, #shown");
  const found = {
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    page: luminance(ground(document.body)),
    contrast: Math.min(...texts.map(contrast)),
    smallest: Math.min(...texts.map((each) => parseFloat(getComputedStyle(each).fontSize))),
    signs: Object.fromEntries(cells.map((each) => [each.dataset.word, sign(each)])),
    legend: all(".legend button").map((each) => [each.textContent, sign(each)]),
    width: document.documentElement.scrollWidth,
    bottom: cells.at(-1).getBoundingClientRect().bottom,
    shown: document.getElementById("shown").textContent,
  };
  document.querySelector("[data-toggle=hidden]").click();
  found.dimmed = cells.filter((each) => each.classList.contains("out")).map((each) => each.dataset.word);
  cells[0].click();
  found.detail = document.getElementById("detail").open && document.getElementById("detail").innerText;
  document.body.appendChild(document.createElement("output")).textContent = JSON.stringify(found);
})();
