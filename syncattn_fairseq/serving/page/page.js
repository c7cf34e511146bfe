"use strict";
// Everything from the service becomes text or a picture, never HTML.
const byId = (id) => document.getElementById(id);
const shown = {
  parses: "above and below, each word and the word that it depends on",
  links: "between them, which words translate each other",
};
let asked = 0;

const ask = async (what, sentence) => {
  const body = JSON.stringify({ sentences: [sentence] });
  const response = await fetch(what, { method: "POST", body });
  if (!response.ok) throw new Error((await response.json()).error);
  return response;
};

const list = (id, subwords) => byId(id).replaceChildren(...subwords.map((subword) => {
  const item = document.createElement("li");
  item.textContent = subword;
  return item;
}));

const draw = async (sentence, isLatest) => {
  const image = new Image();
  image.alt = byId("legend").textContent;
  image.src = URL.createObjectURL(await (await ask("draw", sentence)).blob());
  await image.decode();
  URL.revokeObjectURL(image.src);
  if (isLatest()) byId("picture").replaceChildren(image);
};

byId("form").onsubmit = async (event) => {
  event.preventDefault();
  const number = ++asked, sentence = byId("sentence").value;
  const isLatest = () => number === asked; // answers may overtake each other
  byId("note").textContent = "…";
  byId("translation").textContent = "";
  byId("picture").replaceChildren();
  byId("found").hidden = true;
  try {
    const [found] = await (await ask("analyse", sentence)).json();
    if (!isLatest()) return;
    byId("translation").textContent = found.target.text;
    byId("note").textContent = found.fault;
    list("source", found.source.subwords);
    list("target", found.target.subwords);
    byId("found").hidden = found.target.subwords.length === 0;
    if (byId("legend").textContent && !byId("found").hidden) await draw(sentence, isLatest);
  } catch (error) {
    if (isLatest()) byId("note").textContent = error.message;
  }
};

fetch("health").then((response) => response.json()).then(({ source, target, shows }) => {
  document.title = byId("title").textContent = `Translation, ${source} to ${target}`;
  const kinds = Object.keys(shown).filter((kind) => shows.includes(kind));
  if (kinds.length) byId("legend").textContent = `The picture: ${kinds.map((kind) => shown[kind]).join("; ")}`;
});
