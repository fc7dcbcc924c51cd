const setTriggerValue = () => {};
for (const place of document.querySelectorAll(".kb-linked")) {
  const html = place.querySelector(".kb-tree-root").innerHTML, group = place.dataset.group;
  drawTree({ data: { html, group }, parentElement: place, setTriggerValue });
}
for (const place of document.querySelectorAll(".kb-matrix")) {
  const data = [JSON.parse(place.querySelector("script").textContent)];
  drawMatrix({ data, parentElement: place, setTriggerValue });
  place.querySelector(".kb-save").onclick = () =>
    place.querySelector("canvas.base").toBlob((picture) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(picture);
      link.download = place.dataset.name + ".png";
      link.click();
    });
}
