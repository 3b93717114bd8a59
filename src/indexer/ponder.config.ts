export { default } from "../../ponder.config.js";
