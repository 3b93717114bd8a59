import type { Context } from "hono";
import type { Deps } from "../../deps.js";
import { readOverview } from "../../features/operator/read-overview.js";
import { checkReadiness } from "../../features/system/routes.js";
import { clientAddress, createRateLimiter, takeOrRefuse } from "../../http/rate-limit.js";
import type { AppEnv } from "../../http/router.js";
import { OperatorPage, SignInPage } from "./page.js";
import { createOperatorSession } from "./session.js";

/** Sign-in attempts per minute and client; independent of the configured limits. */
const TRIES = 10;

/** `/operator`: every page of it requires the operator's key. */
export function operatorPages(
  deps: Pick<Deps, "db" | "clock" | "publicClient" | "config">,
  operatorKey: string,
) {
  const session = createOperatorSession(operatorKey, deps.config);
  const limiter = createRateLimiter(TRIES);
  const signIn = (c: Context<AppEnv>, fault: string | null) => {
    c.status(401);
    c.header("Cache-Control", "no-store");
    return c.render(<SignInPage fault={fault} />, { title: "Operator" });
  };

  return {
    async show(c: Context<AppEnv>) {
      if (!session.isOpen(c)) return signIn(c, null);
      const [overview, readiness] = await Promise.all([readOverview(deps), checkReadiness(deps)]);
      c.header("Cache-Control", "no-store");
      return c.render(<OperatorPage overview={overview} readiness={readiness} />, { title: "Operator" });
    },
    async enter(c: Context<AppEnv>) {
      takeOrRefuse(c, "operator", limiter, clientAddress(c, deps.config.trustedProxies));
      const key = new URLSearchParams(c.get("rawBody").toString()).get("key") ?? "";
      if (!session.open(c, key)) return signIn(c, "This is not the operator's key.");
      return c.redirect("/operator", 303);
    },
    async leave(c: Context<AppEnv>) {
      session.close(c);
      return c.redirect("/operator", 303);
    },
  };
}
