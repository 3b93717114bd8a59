/** Contract wallets as people have them: a Safe, one with a passkey, and an account with code (EIP-7702). */
import { execFileSync } from "node:child_process";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { contractWallet, type Signer } from "@working-contracts/client/index";
import { type Abi, type Address, concatHex, encodeAbiParameters, type Hex, zeroAddress } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { ROOT } from "../../src/root.js";
import { foundryBinary } from "../../tools/local/foundry.js";
import { walletOf } from "./chain.js";
import type { World } from "./world.js";

interface Artifact {
  abi: Abi;
  bytecode: Hex;
}

const require = createRequire(import.meta.url);
const SAFE = dirname(require.resolve("@safe-global/safe-smart-account/package.json"));
const safeArtifact = (path: string): Artifact =>
  require(join(SAFE, `build/artifacts/contracts/${path}.json`));

/** Wallets of the tests: those in `out/`; if one is missing or old there, compiled apart from it, as other suites write it. */
function compiled(...paths: string[]): Artifact[] {
  const sources = paths.map((path) => `test/contracts/${path}.sol`);
  const artifactsIn = (out: string) =>
    sources.map((source): Artifact => {
      const path = join(out, basename(source), `${basename(source, ".sol")}.json`);
      if (statSync(path).mtimeMs < statSync(join(ROOT, source)).mtimeMs) throw new Error(`${path} is old.`);
      const { abi, bytecode } = JSON.parse(readFileSync(path, "utf8"));
      return { abi, bytecode: bytecode.object };
    });
  try {
    return artifactsIn(join(ROOT, "out"));
  } catch {}
  const out = mkdtempSync(join(tmpdir(), "wallets-"));
  try {
    const folders = ["--out", out, "--cache-path", join(out, "cache")];
    execFileSync(foundryBinary("forge"), ["build", ...sources, ...folders], { cwd: ROOT, stdio: "pipe" });
    return artifactsIn(out);
  } finally {
    rmSync(out, { recursive: true });
  }
}

/** One wallet of each kind, deployed and in the form in which our client signs with it. */
export async function deployWallets(
  world: World,
): Promise<{ safe: Signer; passkey: Signer; delegated: Signer }> {
  const account = privateKeyToAccount(generatePrivateKey());
  const deployer = await walletOf(world, { account, address: account.address });
  const deploy = async ({ abi, bytecode }: Artifact, args: unknown[] = []): Promise<Address> => {
    const hash = await deployer.deployContract({ abi, bytecode, args });
    const { contractAddress } = await world.publicClient.waitForTransactionReceipt({ hash });
    return contractAddress as Address;
  };
  const [passkeyWallet, delegatedAccount] = compiled("harness/PasskeyWallet", "mocks/DelegatedAccount") as [
    Artifact,
    Artifact,
  ];

  /** Two owners, both of whom must sign. */
  async function newSafe(): Promise<Signer> {
    const owners = [1, 2]
      .map(() => privateKeyToAccount(generatePrivateKey()))
      .sort((a, b) => (a.address.toLowerCase() < b.address.toLowerCase() ? -1 : 1));
    const singleton = await deploy(safeArtifact("Safe.sol/Safe"));
    const handler = await deploy(
      safeArtifact("handler/CompatibilityFallbackHandler.sol/CompatibilityFallbackHandler"),
    );
    const address = await deploy(safeArtifact("proxies/SafeProxy.sol/SafeProxy"), [singleton]);
    const setup = await deployer.writeContract({
      address,
      abi: safeArtifact("Safe.sol/Safe").abi,
      functionName: "setup",
      args: [owners.map((one) => one.address), 2, zeroAddress, "0x", handler, zeroAddress, 0, zeroAddress],
    });
    await world.publicClient.waitForTransactionReceipt({ hash: setup });
    const domain = { chainId: world.chainId, verifyingContract: address };
    return contractWallet(address, async (message) => {
      const types = { SafeMessage: [{ name: "message", type: "bytes" }] };
      const typedData = { domain, types, primaryType: "SafeMessage", message: { message } } as const;
      return concatHex(await Promise.all(owners.map((owner) => owner.signTypedData(typedData))));
    });
  }

  async function newPasskeyWallet(): Promise<Signer> {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const { x = "", y = "" } = publicKey.export({ format: "jwk" });
    const hexOf = (text: string): Hex =>
      `0x${Buffer.from(text, "base64url").toString("hex").padStart(64, "0")}`;
    const address = await deploy(passkeyWallet, [hexOf(x), hexOf(y)]);
    return contractWallet(address, async (hash) =>
      assertionOf(hash, (data) => sign("sha256", data, { key: privateKey, dsaEncoding: "ieee-p1363" })),
    );
  }

  async function newDelegatedAccount(): Promise<Signer> {
    const owner = privateKeyToAccount(generatePrivateKey());
    const contractAddress = await deploy(delegatedAccount);
    const authorization = await owner.signAuthorization({
      contractAddress,
      chainId: world.chainId,
      nonce: 0,
    });
    const hash = await deployer.sendTransaction({ to: account.address, authorizationList: [authorization] });
    await world.publicClient.waitForTransactionReceipt({ hash });
    const code = await world.publicClient.getCode({ address: owner.address });
    if (code !== concatHex(["0xef0100", contractAddress])) throw new Error(`the account's code is ${code}`);
    return owner;
  }

  return { safe: await newSafe(), passkey: await newPasskeyWallet(), delegated: await newDelegatedAccount() };
}

/** Order of the group of P-256. */
const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/** An authenticator's assertion (WebAuthn, section 6.3.3) of a hash as the challenge, as OpenZeppelin's contract reads it. */
function assertionOf(hash: Hex, signP256: (data: Buffer) => Buffer): Hex {
  const challenge = Buffer.from(hash.slice(2), "hex").toString("base64url");
  const clientDataJSON = JSON.stringify({
    type: "webauthn.get",
    challenge,
    origin: "https://wallet.example",
  });
  const rpIdHash = createHash("sha256").update("wallet.example").digest();
  // User present and verified; the counter is zero.
  const authenticatorData = Buffer.concat([rpIdHash, Buffer.from([0x05]), Buffer.alloc(4)]);
  const signature = signP256(
    Buffer.concat([authenticatorData, createHash("sha256").update(clientDataJSON).digest()]),
  );
  const wordAt = (start: number) => BigInt(`0x${signature.subarray(start, start + 32).toString("hex")}`);
  const [r, s] = [wordAt(0), wordAt(32)];
  const lowS = s > P256_ORDER / 2n ? P256_ORDER - s : s;
  const word = (value: bigint): Hex => `0x${value.toString(16).padStart(64, "0")}`;
  return encodeAbiParameters(
    ["bytes32", "bytes32", "uint256", "uint256", "bytes", "string"].map((type) => ({ type })),
    [
      ...[word(r), word(lowS)],
      BigInt(clientDataJSON.indexOf('"challenge"')),
      BigInt(clientDataJSON.indexOf('"type"')),
      `0x${authenticatorData.toString("hex")}`,
      clientDataJSON,
    ],
  );
}
