// Generated from contracts/ by `npm run abi`: the deployed code's hash with zeros for immutables, and their places in bytes.
export const DEPLOYED_CODE = {
  factory: {
    hash: "0x759dfb7ea8b076cab5c85f8ed152106e1c424c3b944368a39acc201cb4f01861",
    immutables: {
      implementation: [5278, 8236],
    },
  },
  implementation: {
    hash: "0x8690dbb74a293466e29a014ded3a3f65bc80f02d51edb45c9e6b3660558fa546",
    immutables: {
      factory: [10401, 11482, 16892],
      asset: [3644, 7772, 10446, 14754, 18031, 19539, 21158, 21362, 21588, 22969],
      relay: [459, 6598, 10488, 14591, 20587, 20761],
      registry: [5896, 10533, 13129],
      protocolToken: [10572, 18456],
    },
  },
} as const;
