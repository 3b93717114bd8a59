import { type Deps, reading } from "../../../deps.js";
import { createRouter } from "../../../http/router.js";
import { acceptContractRoute } from "./accept.js";
import { approveContractRoute } from "./approve.js";
import { cancelContractRoute } from "./cancel.js";
import { createContractRoute } from "./create.js";
import { deliverRoute } from "./deliver.js";
import { disputeContractRoute } from "./dispute.js";
import { getContractRoute } from "./get.js";
import { getSettlementRoute } from "./get-settlement.js";
import { getTermsRoute } from "./get-terms.js";
import { listContractsRoute } from "./list.js";
import { withdrawContractRoute } from "./withdraw.js";

/** The life of a contract; the votes on a disputed one are routes/votes. */
export function contractRoutes(deps: Deps) {
  return createRouter()
    .route("/", createContractRoute(deps))
    .route("/", listContractsRoute(reading(deps)))
    .route("/", getContractRoute(deps))
    .route("/", getTermsRoute(deps))
    .route("/", getSettlementRoute(reading(deps)))
    .route("/", acceptContractRoute(deps))
    .route("/", deliverRoute(deps))
    .route("/", approveContractRoute(deps))
    .route("/", disputeContractRoute(deps))
    .route("/", withdrawContractRoute(deps))
    .route("/", cancelContractRoute(deps));
}
