/** One JSON-RPC request to an MCP server by HTTP, without the SDK's client: with whatever headers a test wants. */
export function mcpRequest(
  url: string,
  method: string,
  { headers = {}, params = {} }: { headers?: Record<string, string>; params?: object } = {},
): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
}
