/** `wcontract key`: the private key, which is never printed, and the API keys of its address. */
import type { Command } from "commander";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { type Context, loadAccount } from "../context.js";
import { UsageError } from "../errors.js";
import { addressOf, writeKeystore } from "../keystore.js";
import { askSecret, pasted, plain, table } from "../terminal.js";

/** Adds `key` and its commands. Only `list` and `revoke` call the service. */
export function addKeyCommands(program: Command, contextOf: (command: Command) => Context): void {
  const key = program.command("key").description("the key that signs, and the API keys of its address");

  key
    .command("new")
    .description("create a key in an encrypted keystore file")
    .action(async (_, command: Command) => save(contextOf(command), generatePrivateKey()));

  key
    .command("import")
    .description("save the key in WC_PRIVATE_KEY to an encrypted keystore file")
    .action(async (_, command: Command) => {
      const context = contextOf(command);
      const { privateKey } = context.settings;
      if (privateKey === undefined) throw new UsageError("Set WC_PRIVATE_KEY to the key that you import.");
      await save(context, privateKey);
    });

  key
    .command("show")
    .description("show the address of the key, never the key itself")
    .action(async (_, command: Command) => {
      const { settings, out } = contextOf(command);
      const isInFile = settings.privateKey === undefined;
      const stated = isInFile ? addressOf(settings.keystorePath) : null;
      const address = stated ?? (await loadAccount(settings)).address.toLowerCase();
      out.result({ address, source: isInFile ? settings.keystorePath : "WC_PRIVATE_KEY" }, () => address);
    });

  key
    .command("check")
    .description("check that the password decrypts the keystore")
    .action(async (_, command: Command) => {
      const { settings, out } = contextOf(command);
      const address = (await loadAccount(settings)).address.toLowerCase();
      out.result({ address }, () => `${address} can sign`);
    });

  key
    .command("list")
    .description("list the API keys of this address")
    .action(async (_, command: Command) => {
      const { agent, out } = contextOf(command);
      const keys = await (await agent()).apiKeys();
      const rows = keys.map((one) => [
        pasted(one.id) ?? "(no id)",
        plain(one.label ?? ""),
        one.createdAt,
        one.revokedAt ?? "active",
      ]);
      out.result(keys, () => table(["id", "label", "created", "revoked"], rows));
    });

  key
    .command("revoke [keyId]")
    .description("revoke one API key, or all of them and the service's authority to act for this address")
    .action(async (keyId: string | undefined, _: unknown, command: Command) => {
      const { agent, out } = contextOf(command);
      const revokedCount = await (await agent()).revokeKeys(keyId);
      out.result({ revokedCount }, () => `${revokedCount} revoked`);
    });
}

async function save({ settings, out }: Context, privateKey: `0x${string}`): Promise<void> {
  const { keystorePath: path } = settings;
  const password = settings.password ?? (await newPassword());
  if (password === "") throw new UsageError("The password must not be empty.");
  await writeKeystore(path, privateKey, password);
  const address = privateKeyToAddress(privateKey).toLowerCase();
  out.progress(`saved to ${path}; without this file and its password the key is lost`);
  out.result({ address, keystore: path }, () => address);
}

async function newPassword(): Promise<string> {
  const otherwise = "Set WC_PASSWORD or WC_PASSWORD_FILE for the new keystore.";
  const password = await askSecret("Password of the new key: ", otherwise);
  if ((await askSecret("Repeat the password: ", otherwise)) !== password)
    throw new UsageError("The passwords do not match.");
  return password;
}
