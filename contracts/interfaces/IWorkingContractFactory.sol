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

    /// @notice Deploys the escrow of the packed terms, if needed, and opens it with the initiator's deposit. Anyone can
    /// call, because the address that the authorization pays commits to every term.
    ///
    /// Requirements:
    /// - Those of {deploy} and {IWorkingContractEscrow.open}.
    ///
    /// @param packedTerms See {pack}; packed, because zero bytes of calldata and events also cost gas.
    function create(bytes calldata packedTerms, Authorization calldata deposit) external returns (address escrow);

    /// @notice Deploys the escrow of the packed terms, or returns its address if it is already deployed.
    ///
    /// Requirements:
    /// - The terms are complete and their deadlines ordered: match <= withdrawal <= delivery < review <= a year ahead.
    /// - The parameters are current, or were replaced less than a day ago. Once the match deadline has passed, any
    ///   earlier parameters are valid, so that money sent to the address can be refunded.
    function deploy(bytes calldata packedTerms) external returns (address escrow);

    /// @notice Sets the parameters of future contracts.
    ///
    /// Requirements:
    /// - The caller is the owner.
    /// - Each parameter is within its bounds.
    function setParameters(Parameters calldata parameters_) external;

    /// @notice Sets the {treasury}. Only the owner can call, and not with zero.
    function setTreasury(address treasury_) external;

    /// @notice Sets the {reviewer}. Only the owner can call, and not with zero.
    function setReviewer(address reviewer_) external;

    /// @notice The immutable bytes that follow the proxy code of an escrow with `terms`.
    function pack(Terms calldata terms) external pure returns (bytes memory packedTerms);

    /// @notice The escrow address that commits to `terms`, deployed or not.
    function predict(Terms calldata terms) external view returns (address escrow);

    /// @notice Whether this factory deployed `account` as an escrow. Its address and code alone prove it.
    function isEscrow(address account) external view returns (bool);

    /// @notice Parameters of future contracts.
    function parameters() external view returns (Parameters memory);
    /// @notice Receives fees, the Treasury's share of slashed stakes, and bonds and remainders of votes that go to no
    /// voter, at the moment an escrow pays.
    function treasury() external view returns (address);
    /// @notice The account that may release held payouts early.
    function reviewer() external view returns (address);
    /// @notice Time (seconds) until which contracts can be created under these packed parameters; zero if unknown.
    function parametersValidUntil(bytes29 packedParameters) external view returns (uint40);
    /// @notice The implementation behind every escrow's proxy.
    function IMPLEMENTATION() external view returns (address);
}
