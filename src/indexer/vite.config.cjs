/**
 * Ponder loads the index through Vite, which transforms every file behind the `ponder` package: with its GraphQL server
 * 400 of them, half of the time of a start. The index needs four exports. CommonJS, because Vite writes a file beside
 * an ES module before it loads it.
 */
const { join } = require("node:path");

const fileOf = (path) => JSON.stringify(join(__dirname, "../../node_modules/ponder/dist/esm", path));
const ENTRY = "\0ponder-entry";
const CODE = `
  export { createConfig } from ${fileOf("config/index.js")};
  export { onchainTable, primaryKey } from ${fileOf("drizzle/onchain.js")};
  export { index } from "drizzle-orm/pg-core";`;

module.exports = {
  plugins: [
    {
      name: "ponder-entry",
      enforce: "pre",
      resolveId: (id) => (id === "ponder" ? ENTRY : null),
      load: (id) => (id === ENTRY ? CODE : null),
    },
  ],
};
