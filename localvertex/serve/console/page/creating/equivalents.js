// The same run without the page: a command line, and a program with Google's SDK.
import { html, useState } from "../ui/html.js";
import { Section } from "../ui/page.js";
import { Tabs } from "../ui/tabs.js";
import { Code } from "../ui/values.js";

const TABS = [
  { id: "command", title: "Command" },
  { id: "program", title: "Python" },
];

/** @param {{answer: CheckAnswer}} props */
export function Same({ answer }) {
  const [selected, select] = useState("command");
  const text = selected === "command" ? answer.command : answer.program;
  const none = answer.no_program && selected === "program" ? `Not available: ${answer.no_program}.` : "";
  return html`<${Section} title="The same run without this page">
    <${Tabs} label="Command or program" tabs=${TABS} selected=${selected} onSelect=${select}>
      ${text ? html`<${Code} text=${text} />` : html`<p class="muted">${none || "Correct the form first."}</p>`}
    <//>
  <//>`;
}
