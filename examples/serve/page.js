"use strict";
// Everything from the service becomes text or a picture, never HTML.
const byId = (id) => document.getElementById(id);
let asked = 0;

const ask = async (what, sentence) => {
  const body = JSON.stringify({ sentences: [sentence] });
  const response = await fetch(`/${what}`, { method: "POST", body });
  if (!response.ok) throw new Error((await response.json()).error);
  return response;
};

byId("form").onsubmit = async (event) => {
  event.preventDefault();
  const number = ++asked, sentence = byId("sentence").value;
  const isLatest = () => number === asked; // answers may overtake each other
  byId("note").textContent = "…";
  try {
    const [found] = await (await ask("translate", sentence)).json();
    if (!isLatest()) return;
    byId("translation").textContent = found.text;
    byId("note").textContent = found.error || (found.cut ? "It may be cut." : "");
    const picture = await (await ask("draw", sentence)).blob();
    if (!isLatest()) return;
    const image = new Image();
    image.alt = "The parses of both sides, and the links between their words";
    image.src = URL.createObjectURL(picture);
    await image.decode();
    URL.revokeObjectURL(image.src);
    byId("picture").replaceChildren(image);
    byId("legend").hidden = false;
  } catch (error) {
    if (isLatest()) byId("note").textContent = error.message;
  }
};

fetch("/health").then((response) => response.json()).then(({ source, target }) => {
  document.title = byId("title").textContent = `Translation, ${source} to ${target}`;
});
