/** Writes src/chain/bytecode.json from the compiled contracts; with --check only compares. */
import { writeGenerated } from "./generated.js";
import { compiledBytecode } from "./local/foundry.js";

const origin = { from: "the compiled contracts", command: "npm run abi" };
writeGenerated("src/chain/bytecode.json", compiledBytecode(), origin);
