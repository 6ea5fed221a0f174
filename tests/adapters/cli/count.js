// In a page whose one image is a picture of the page of `who --html`: counts its colours, as JSON, into an <output>.
"use strict";
(() => {
  const image = document.querySelector("img");
  image.addEventListener("load", () => {
    const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight).getContext("2d");
    canvas.drawImage(image, 0, 0);
    const { data } = canvas.getImageData(0, 0, image.naturalWidth, image.naturalHeight);
    const found = {};
    for (let at = 0; at < data.length; at += 4) {
      const colour = [...data.slice(at, at + 3)].map((each) => each.toString(16).padStart(2, "0")).join("");
      found[colour] = (found[colour] ?? 0) + 1;
    }
    document.body.appendChild(document.createElement("output")).textContent = JSON.stringify(found);
  });
})();
