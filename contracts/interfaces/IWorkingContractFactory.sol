// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Authorization, Parameters, Terms} from "../types/Types.sol";

/// @notice Predicts and deploys the escrow of each Working Contract, and holds the parameters for future ones.
interface IWorkingContractFactory {
    /// @param packedTerms See {pack}.
    event WorkingContractDeployed(address indexed escrow, bytes packedTerms);
    event ParametersChanged(Parameters parameters);
    event TreasuryChanged(address treasury);
    event ReviewerChanged(address reviewer);

    error InvalidTerms(string reason);
    error InvalidParameters(string reason);
    error UnknownParameters();
    error ZeroAddress();

    /// @notice Deploys the escrow of `terms` where needed and opens it with the initiator's deposit. Anybody may call:
    /// the address that the authorization pays commits to every term.
    /// @param packedTerms See {pack}; packed, because zero bytes of calldata and events cost gas too.
    function create(bytes calldata packedTerms, Authorization calldata deposit) external returns (address escrow);

    /// @notice Deploys the escrow of packed terms, or finds it deployed.
    ///
    /// Requirements:
    /// - The terms are complete and their deadlines ordered: match <= withdrawal <= delivery < review <= a year ahead.
    /// - The parameters are the current ones, or were until less than a day ago. Once the match deadline has passed any
    ///   former parameters will do, so that money sent to the address can be refunded.
    function deploy(bytes calldata packedTerms) external returns (address escrow);

    /// @notice The immutable bytes behind the proxy code of an escrow with `terms`.
    function pack(Terms calldata terms) external pure returns (bytes memory packedTerms);

    /// @notice The escrow address that commits to `terms`, deployed or not.
    function predict(Terms calldata terms) external view returns (address escrow);

    /// @notice Whether `account` is an escrow that this factory deployed; its address and code alone prove it.
    function isEscrow(address account) external view returns (bool);

    function parameters() external view returns (Parameters memory);
    function treasury() external view returns (address);
    function reviewer() external view returns (address);
}
