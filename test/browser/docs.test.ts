/** The API reference, in a real browser. */
import { describe, expect, inject, test } from "vitest";
import {
  DESKTOP,
  expectAccessible,
  expectNoSidewaysScroll,
  faultsOf,
  PHONE,
  useBrowser,
} from "./support/browser.js";

const isSkipped = inject("chromium") === null;
const surfer = useBrowser();

describe.skipIf(isSkipped)("the API reference", () => {
  test.each([DESKTOP, PHONE])(
    "is accessible, fits the screen and obeys the content policy (%o)",
    async (viewport) => {
      const page = await surfer.open("/docs", { viewport });
      await expectNoSidewaysScroll(page);
      await expectAccessible(page);
      expect(faultsOf(page)).toEqual([]);
      await page.context().close();
    },
  );

  test("shows every operation of the document, and leads to it", async () => {
    const page = await surfer.open("/docs");
    const document = (await (await page.request.get("/openapi.json")).json()) as {
      paths: Record<string, Record<string, { operationId: string }>>;
    };
    const ids = Object.values(document.paths).flatMap((item) =>
      Object.values(item).map(({ operationId }) => operationId),
    );
    for (const id of ids) expect(await page.locator(`article#${id}`).count(), id).toBe(1);

    await page.getByText("Contracts (", { exact: false }).first().click();
    await page.getByRole("link", { name: "POST /v1/contracts", exact: true }).click();
    expect(new URL(page.url()).hash).toBe("#createContract");
    const operation = page.locator("article#createContract");
    await operation.getByText("Request", { exact: true }).click();
    expect(await operation.getByText('"budgetOrPrice": 50').isVisible()).toBe(true);
    expect(await operation.getByText("duplicate_contract").isVisible()).toBe(true);

    await operation.getByText("Response 200").click();
    await operation.getByRole("link", { name: "Contract", exact: true }).click();
    expect(await page.locator("article#schema-Contract").isVisible()).toBe(true);
    expect(faultsOf(page)).toEqual([]);
  });
});
