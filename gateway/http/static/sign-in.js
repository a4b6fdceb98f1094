// Signing in, where access control is on.

import { post } from "./api.js";
import { h, show } from "./dom.js";
import { head, panel, trouble } from "./parts.js";

export function signIn(root, done) {
  const name = h("input", { id: "access-key", autocomplete: "username", spellcheck: "false", required: true });
  const secret = h("input", { id: "secret-key", type: "password", autocomplete: "current-password" });
  const note = h("div", { class: "content" });
  const field = (label, input) => h("label", { class: "field" }, h("span", {}, label), input);
  const submit = async (event) => {
    event.preventDefault();
    show(note);
    try {
      await post("session", { access_key: name.value.trim(), secret_key: secret.value });
    } catch (error) {
      show(note, trouble(error));
      secret.value = "";
      name.focus();
      return;
    }
    done();
  };
  show(root,
    head("Sign in", { sub: "Access control is on: you see and change what your rules allow." }),
    panel("Your access key",
      note,
      h("form", { class: "stack", onsubmit: submit },
        field("Access key, user or token", name),
        field("Secret key; tokens need none", secret),
        h("div", { class: "bar" }, h("button", { type: "submit" }, "Sign in")))));
  name.focus();
}
