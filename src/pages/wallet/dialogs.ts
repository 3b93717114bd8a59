/** Questions and messages of the script, readable by screen readers. */

/** Asks in a modal dialog. Returns the choice, or an empty text if it was dismissed. */
export function ask(question: string, { choices }: { choices: readonly string[] }): Promise<string> {
  const dialog = document.createElement("dialog");
  const text = document.createElement("p");
  text.id = "question";
  text.textContent = question;
  dialog.setAttribute("aria-labelledby", text.id);
  const form = document.createElement("form");
  form.method = "dialog";
  for (const choice of choices) {
    const button = document.createElement("button");
    button.value = choice;
    button.textContent = choice;
    form.append(button);
  }
  dialog.append(text, form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
  });
}

/** Shows a message at the bottom of the page until the next one. */
export function tell(message: string, { isError = false }: { isError?: boolean } = {}): void {
  let place = document.getElementById("told");
  if (place === null) {
    place = document.createElement("output");
    place.id = "told";
    document.body.append(place);
  }
  place.className = isError ? "notice bad" : "notice";
  place.setAttribute("role", isError ? "alert" : "status");
  place.textContent = message;
}
