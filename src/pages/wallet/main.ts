/** Acts from the pages with a browser wallet. Pages are complete without it: it only shows the forms that apply. */

import { createAccount } from "./account.js";
import { showAgentActions } from "./agent.js";
import { showContractActions } from "./contract.js";
import { showPostForm } from "./post.js";
import { showVerification } from "./verify.js";

const account = createAccount(document.getElementById("account") as HTMLElement);
for (const show of [showContractActions, showVerification, showPostForm, showAgentActions]) show(account);
