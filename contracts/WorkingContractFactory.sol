// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {Create2} from "@openzeppelin/contracts/utils/Create2.sol";
import {Clones} from "@openzeppelin/contracts/proxy/Clones.sol";
import {WorkingContractEscrow} from "./WorkingContractEscrow.sol";
import {Dependencies} from "./interfaces/IWorkingContractEscrow.sol";
import {IWorkingContractFactory} from "./interfaces/IWorkingContractFactory.sol";
import {Settlement} from "./libraries/Settlement.sol";
import {TermsCodec} from "./libraries/TermsCodec.sol";
import {Authorization, Parameters, Terms} from "./types/Types.sol";

/// @notice See {IWorkingContractFactory}. The owner sets the Treasury, the reviewer and, within hard bounds, the
/// parameters of future contracts. No one can change a deployed escrow.
contract WorkingContractFactory is IWorkingContractFactory, Ownable2Step {
    using TermsCodec for bytes;

    uint256 private constant MAX_PROTOCOL_FEE = 2000;
    uint256 private constant MAX_PAYOUT_HOLD = 72 hours;
    uint256 private constant MIN_VOTING_WINDOW = 1 hours;
    /// @dev Not above EscrowCustody's refund delays: when anyone can refund, no vote can be paid any more.
    uint256 private constant MAX_VOTING_WINDOW = 7 days;
    uint256 private constant MAX_RECRUIT_COUNT = 31;
    uint256 private constant MIN_ELIGIBILITY_STAKE = 1000;
    uint256 private constant MAX_CRITERIA = 10;
    uint256 private constant MAX_DURATION = 365 days;

    /// @dev How long a quote made under replaced parameters can still be paid.
    uint40 private constant PARAMETERS_GRACE = 1 days;

    /// @inheritdoc IWorkingContractFactory
    address public immutable IMPLEMENTATION;

    /// @inheritdoc IWorkingContractFactory
    address public treasury;
    /// @inheritdoc IWorkingContractFactory
    address public reviewer;
    Parameters private _parameters;

    /// @inheritdoc IWorkingContractFactory
    mapping(bytes29 packedParameters => uint40) public parametersValidUntil;

    constructor(
        address owner_,
        address treasury_,
        address reviewer_,
        Parameters memory parameters_,
        Dependencies memory dependencies
    ) Ownable(owner_) {
        IMPLEMENTATION = address(new WorkingContractEscrow(dependencies));
        _setTreasury(treasury_);
        _setReviewer(reviewer_);
        _setParameters(parameters_);
    }

    /// @inheritdoc IWorkingContractFactory
    function create(bytes calldata packedTerms, Authorization calldata deposit) external returns (address escrow) {
        escrow = deploy(packedTerms);
        WorkingContractEscrow(escrow).open(deposit);
    }

    /// @inheritdoc IWorkingContractFactory
    function deploy(bytes calldata packedTerms) public returns (address escrow) {
        bytes memory packed = packedTerms;
        bytes memory code = _creationCode(packed);
        escrow = Create2.computeAddress(0, keccak256(code));
        if (escrow.code.length != 0) return escrow;

        _requireValid(packed);
        Create2.deploy(0, 0, code);

        emit WorkingContractDeployed(escrow, packed);
    }

    /// @inheritdoc IWorkingContractFactory
    function pack(Terms calldata terms) external pure returns (bytes memory packedTerms) {
        return TermsCodec.pack(terms);
    }

    /// @inheritdoc IWorkingContractFactory
    function setParameters(Parameters calldata parameters_) external onlyOwner {
        parametersValidUntil[TermsCodec.packParameters(_parameters)] = uint40(block.timestamp) + PARAMETERS_GRACE;
        _setParameters(parameters_);
    }

    /// @inheritdoc IWorkingContractFactory
    function setTreasury(address treasury_) external onlyOwner {
        _setTreasury(treasury_);
    }

    /// @inheritdoc IWorkingContractFactory
    function setReviewer(address reviewer_) external onlyOwner {
        _setReviewer(reviewer_);
    }

    /// @inheritdoc IWorkingContractFactory
    function predict(Terms calldata terms) external view returns (address escrow) {
        return Create2.computeAddress(0, keccak256(_creationCode(TermsCodec.pack(terms))));
    }

    /// @inheritdoc IWorkingContractFactory
    function isEscrow(address account) external view returns (bool) {
        if (account.code.length <= 0x2d) return false;
        bytes memory packed = Clones.fetchCloneArgs(account);
        return Create2.computeAddress(0, keccak256(_creationCode(packed))) == account;
    }

    /// @inheritdoc IWorkingContractFactory
    function parameters() external view returns (Parameters memory) {
        return _parameters;
    }

    /// @dev Creation code of OpenZeppelin's clone with `packedTerms` as its immutable arguments. Here, because {Clones}
    /// would build it twice: once for the address and once for the deployment.
    function _creationCode(bytes memory packedTerms) private view returns (bytes memory) {
        return abi.encodePacked(
            hex"61",
            uint16(0x2d + packedTerms.length),
            hex"3d81600a3d39f3363d3d373d3d3d363d73",
            IMPLEMENTATION,
            hex"5af43d82803e903d91602b57fd5bf3",
            packedTerms
        );
    }

    function _requireValid(bytes memory t) private view {
        require(t.hasKnownForm(), InvalidTerms("not packed terms"));
        require(t.initiator() != address(0), InvalidTerms("initiator is zero"));
        require(t.initiator() != t.counterparty(), InvalidTerms("counterparty is the initiator"));
        require(t.price() != 0, InvalidTerms("price is zero"));
        require(t.criteriaCount() != 0 && t.criteriaCount() <= MAX_CRITERIA, InvalidTerms("criteria count not 1 to 10"));
        require(
            t.matchDeadline() <= t.withdrawalDeadline() && t.withdrawalDeadline() <= t.deliveryDeadline()
                && t.deliveryDeadline() < t.reviewDeadline(),
            InvalidTerms("deadlines out of order")
        );
        require(t.reviewDeadline() <= block.timestamp + MAX_DURATION, InvalidTerms("review deadline too far ahead"));

        uint40 validUntil = parametersValidUntil[t.packedParameters()];
        require(
            validUntil > block.timestamp || (validUntil != 0 && block.timestamp >= t.matchDeadline()),
            UnknownParameters()
        );
    }

    function _setParameters(Parameters memory p) private {
        require(p.protocolFee <= MAX_PROTOCOL_FEE, InvalidParameters("protocolFee"));
        require(p.workerStakeRatio <= Settlement.BASIS_POINTS, InvalidParameters("workerStakeRatio"));
        require(p.disputeBondRatio <= Settlement.BASIS_POINTS, InvalidParameters("disputeBondRatio"));
        require(p.backupAgentBondRatio <= Settlement.BASIS_POINTS, InvalidParameters("backupAgentBondRatio"));
        require(p.earlyWithdrawalSlashRatio <= Settlement.BASIS_POINTS, InvalidParameters("earlyWithdrawalSlashRatio"));
        require(p.absentNoneMetClientShare <= Settlement.BASIS_POINTS, InvalidParameters("absentNoneMetClientShare"));
        require(p.baUnclearSlashRatio <= Settlement.BASIS_POINTS, InvalidParameters("baUnclearSlashRatio"));
        require(
            p.baVotingWindow >= MIN_VOTING_WINDOW && p.baVotingWindow <= MAX_VOTING_WINDOW,
            InvalidParameters("baVotingWindow")
        );
        // The registry lets agents into the pool by it: a moment at zero would fill the pool with stakes of nothing.
        require(p.baEligibilityStake >= MIN_ELIGIBILITY_STAKE, InvalidParameters("baEligibilityStake"));
        require(p.baRecruitCount <= MAX_RECRUIT_COUNT, InvalidParameters("baRecruitCount"));
        require(p.payoutHold <= MAX_PAYOUT_HOLD, InvalidParameters("payoutHold"));

        _parameters = p;
        parametersValidUntil[TermsCodec.packParameters(p)] = type(uint40).max;
        emit ParametersChanged(p);
    }

    function _setTreasury(address treasury_) private {
        require(treasury_ != address(0), ZeroAddress());
        treasury = treasury_;
        emit TreasuryChanged(treasury_);
    }

    function _setReviewer(address reviewer_) private {
        require(reviewer_ != address(0), ZeroAddress());
        reviewer = reviewer_;
        emit ReviewerChanged(reviewer_);
    }
}
