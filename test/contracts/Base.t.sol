// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../contracts/WorkingContractEscrow.sol";
import {IAgentSignatures} from "../../contracts/interfaces/IAgentSignatures.sol";
import {IWorkingContractEscrow} from "../../contracts/interfaces/IWorkingContractEscrow.sol";
import {TermsCodec} from "../../contracts/libraries/TermsCodec.sol";
import {TestUSD} from "../../contracts/local/TestUSD.sol";
import {Authorization, Delegation, Outcome, Parameters, Status, Terms} from "../../contracts/types/Types.sol";
import {DeploymentTest} from "./Deployment.sol";

/// @notice The whole protocol on a fresh chain, its actors, and the steps that lead to each state.
abstract contract BaseTest is DeploymentTest {
    uint40 internal constant START = 1_767_225_600; // 2026-01-01T00:00:00Z
    uint80 internal constant PRICE = 50e6;
    uint96 internal constant STAKE = 2.5e6;
    uint96 internal constant BOND = 2.5e6;
    uint256 internal constant FUNDS = 1_000_000e6;
    uint256 internal constant ELIGIBILITY_STAKE = 1000e18;
    string internal constant DOMAIN = "contracts.example";

    bytes32 private constant CANCEL_TYPEHASH = keccak256("CancelAuthorization(address authorizer,bytes32 nonce)");

    TestUSD internal usd;

    /// The operator that escrows know: the Relay.
    address internal operator;
    address internal owner = makeAddr("owner");
    address internal treasury = makeAddr("treasury");
    address internal reviewer = makeAddr("reviewer");
    address internal signer = makeAddr("signer");
    address internal client;
    address internal worker;
    address internal stranger;
    /// Seven Backup Agents.
    address[] internal agents;

    mapping(address account => uint256) internal keyOf;
    uint256 private _uniques;

    function setUp() public virtual {
        vm.warp(START);
        _deployProtocol(_defaultParameters());
        client = _actor("client");
        worker = _actor("worker");
        stranger = _actor("stranger");
        for (uint256 i = 0; i < 7; ++i) {
            agents.push(_actor(string.concat("agent ", vm.toString(i))));
        }
    }

    // --- deployment ---

    function _deployProtocol(Parameters memory parameters) internal {
        usd = TestUSD(deployCode("out/TestUSD.sol/TestUSD.json"));
        _deployAround(address(usd), owner, treasury, reviewer, DOMAIN, parameters);
        operator = address(relay);
        vm.prank(owner);
        relay.setSigner(signer, true);
    }

    /// @dev A funded account whose key is known.
    function _actor(string memory name) internal returns (address account) {
        uint256 key;
        (account, key) = makeAddrAndKey(name);
        keyOf[account] = key;
        usd.mint(account, FUNDS);
    }

    function _setParameters(Parameters memory parameters) internal {
        vm.prank(owner);
        factory.setParameters(parameters);
    }

    function _setPayoutHold(uint24 hold) internal {
        Parameters memory parameters = _defaultParameters();
        parameters.payoutHold = hold;
        _setParameters(parameters);
    }

    /// @dev The parameters of earlier terms are valid for another day.
    function _replaceParameters() internal {
        Parameters memory other = _defaultParameters();
        other.protocolFee = 100;
        _setParameters(other);
    }

    // --- signatures ---

    function _authorize(address payer, address to, uint256 amount) internal returns (Authorization memory) {
        return _authorizeAt(address(usd), payer, to, amount);
    }

    function _authorizeAt(address asset, address payer, address to, uint256 amount)
        internal
        returns (Authorization memory)
    {
        return _authorizeWith(_unique(), asset, payer, to, amount);
    }

    function _authorizeWith(bytes32 nonce, address asset, address payer, address to, uint256 amount)
        internal
        view
        returns (Authorization memory authorization)
    {
        authorization.validBefore = type(uint40).max;
        authorization.nonce = nonce;
        authorization.signature = _sign(keyOf[payer], _transferDigest(asset, payer, to, amount, authorization));
    }

    /// @dev An authorization that only `to` itself can use, as our clients sign it.
    function _authorizeReceipt(address payer, address to, uint256 amount)
        internal
        returns (Authorization memory authorization)
    {
        authorization.validAfter = 1;
        authorization.validBefore = type(uint40).max;
        authorization.nonce = _unique();
        bytes32 digest = _digest(RECEIVE_TYPEHASH, address(usd), payer, to, amount, authorization);
        authorization.signature = _sign(keyOf[payer], digest);
    }

    function _transferDigest(
        address asset,
        address payer,
        address to,
        uint256 amount,
        Authorization memory authorization
    ) internal view returns (bytes32) {
        return _digest(TRANSFER_TYPEHASH, asset, payer, to, amount, authorization);
    }

    /// @dev Broadcasts an authorization at the token, as a front-runner does.
    function _frontRun(address payer, address to, uint256 amount, Authorization memory authorization) internal {
        vm.prank(stranger);
        usd.transferWithAuthorization(
            payer,
            to,
            amount,
            authorization.validAfter,
            authorization.validBefore,
            authorization.nonce,
            authorization.signature
        );
    }

    /// @dev An authorization that a front-runner used: its money is at `to`, uncredited.
    function _directTransfer(address payer, address to, uint256 amount)
        internal
        returns (Authorization memory authorization)
    {
        authorization = _authorize(payer, to, amount);
        _frontRun(payer, to, amount, authorization);
    }

    /// @dev An authorization that reads as used at the token but moved nothing.
    function _cancelled(address payer, address to, uint256 amount)
        internal
        returns (Authorization memory authorization)
    {
        authorization = _authorize(payer, to, amount);
        _cancelAuthorization(payer, authorization.nonce);
    }

    function _cancelAuthorization(address payer, bytes32 nonce) internal {
        bytes32 structHash = keccak256(abi.encode(CANCEL_TYPEHASH, payer, nonce));
        bytes32 digest = keccak256(abi.encodePacked("\x19\x01", usd.DOMAIN_SEPARATOR(), structHash));
        usd.cancelAuthorization(payer, nonce, _sign(keyOf[payer], digest));
    }

    /// @dev A sign-in text of today that leaves everything to `operator`.
    function _delegationOf(address agent) internal view returns (Delegation memory) {
        return Delegation({
            agent: agent,
            operator: operator,
            actions: 0xff,
            until: 0,
            nonce: bytes32("nonce"),
            issuedAt: _now(),
            expiresAt: _now() + 300
        });
    }

    function _signDelegation(Delegation memory d) internal view returns (bytes memory) {
        return _signDelegation(keyOf[d.agent], d);
    }

    /// @dev `agent` authorizes the operator to act for it.
    function _delegate(address agent) internal {
        _register(_delegationOf(agent));
    }

    function _register(Delegation memory d) internal {
        delegation.register(d, _signDelegation(d));
    }

    /// @dev The agent's signature over a call of `target`, and the call that carries it.
    function _signed(IAgentSignatures target, address agent, bytes memory call) internal view returns (bytes memory) {
        uint40 deadline = _now() + 10 minutes;
        bytes memory signature = _sign(keyOf[agent], target.actionDigest(agent, deadline, call));
        return abi.encodeCall(IAgentSignatures.withSignature, (agent, deadline, signature, call));
    }

    function _noAuthorization() internal pure returns (Authorization memory authorization) {}

    function _unique() internal returns (bytes32) {
        return keccak256(abi.encode("unique", ++_uniques));
    }

    /// @dev Not `block.timestamp`: the optimizer can read it once for a whole test, across a warp.
    function _now() internal view returns (uint40) {
        return uint40(vm.getBlockTimestamp());
    }

    // --- terms and states ---

    /// @dev Client-initiated open tender of 50.0 with three criteria; never the same twice.
    function _newTerms() internal returns (Terms memory) {
        uint32 now_ = uint32(_now());
        return Terms({
            initiator: client,
            price: PRICE,
            counterparty: address(0),
            criteriaCount: 3,
            workerInitiated: false,
            computedCriteria: false,
            matchDeadline: now_ + 1 days,
            withdrawalDeadline: now_ + 2 days,
            deliveryDeadline: now_ + 4 days,
            reviewDeadline: now_ + 7 days,
            termsHash: _unique(),
            parameters: factory.parameters()
        });
    }

    function _newComputedTerms() internal returns (Terms memory t) {
        t = _newTerms();
        t.computedCriteria = true;
    }

    function _newListing() internal returns (Terms memory t) {
        t = _newTerms();
        t.initiator = worker;
        t.workerInitiated = true;
    }

    function _packed(Terms memory t) internal pure returns (bytes memory) {
        return TermsCodec.pack(t);
    }

    function _depositOf(Terms memory t) internal pure returns (uint256) {
        return t.workerInitiated ? _stakeOf(t) : t.price;
    }

    function _stakeOf(Terms memory t) internal pure returns (uint256) {
        return uint256(t.price) * t.parameters.workerStakeRatio / 10_000;
    }

    function _bondOf(Terms memory t) internal pure returns (uint256) {
        return uint256(t.price) * t.parameters.disputeBondRatio / 10_000;
    }

    function _voteBondOf(Terms memory t) internal pure returns (uint256) {
        return t.criteriaCount * (uint256(t.price) * t.parameters.backupAgentBondRatio / 10_000);
    }

    function _create(Terms memory t) internal returns (WorkingContractEscrow) {
        Authorization memory deposit = _authorize(t.initiator, factory.predict(t), _depositOf(t));
        return WorkingContractEscrow(factory.create(factory.pack(t), deposit));
    }

    function _accept(WorkingContractEscrow escrow, address party) internal {
        Terms memory t = escrow.terms();
        Authorization memory deposit = _authorize(party, address(escrow), t.workerInitiated ? t.price : _stakeOf(t));
        vm.prank(operator);
        escrow.accept(party, deposit);
    }

    function _deliver(WorkingContractEscrow escrow, uint24 outcomes) internal {
        vm.prank(escrow.worker());
        escrow.deliver(keccak256("delivery"), keccak256("checkpoints"), outcomes);
    }

    function _approve(WorkingContractEscrow escrow) internal {
        vm.prank(escrow.client());
        escrow.approve();
    }

    function _dispute(WorkingContractEscrow escrow) internal {
        address party = escrow.client();
        Authorization memory bond = _authorize(party, address(escrow), _bondOf(escrow.terms()));
        vm.prank(operator);
        escrow.dispute(bond);
    }

    function _matched(Terms memory t) internal returns (WorkingContractEscrow escrow) {
        escrow = _create(t);
        _accept(escrow, t.counterparty != address(0) ? t.counterparty : t.workerInitiated ? client : worker);
    }

    function _delivered(Terms memory t, uint24 outcomes) internal returns (WorkingContractEscrow escrow) {
        escrow = _matched(t);
        _deliver(escrow, outcomes);
    }

    function _disputed(Terms memory t) internal returns (WorkingContractEscrow escrow) {
        escrow = _delivered(t, 0);
        _dispute(escrow);
    }

    /// @dev A new escrow in `status`; advances time if only time leads there.
    function _escrowIn(Status status) internal returns (WorkingContractEscrow escrow) {
        Terms memory t = _newTerms();
        t.counterparty = worker;
        if (status == Status.None) return WorkingContractEscrow(factory.deploy(factory.pack(t)));
        if (status == Status.UnderReview) return _delivered(t, 0);
        if (status == Status.Disputed) return _disputed(t);
        if (status == Status.Matched || status == Status.CancelledWithdrawn || status == Status.CancelledAbsent) {
            escrow = _matched(t);
            if (status == Status.CancelledAbsent) vm.warp(t.deliveryDeadline);
            if (status == Status.CancelledWithdrawn) {
                vm.prank(worker);
                escrow.withdraw();
            }
            return escrow;
        }
        if (status >= Status.Resolved && status <= Status.SettledPartial) {
            t.computedCriteria = true;
            escrow = _delivered(
                t, status == Status.SettledNoneMet ? NONE_MET : status == Status.SettledPartial ? TWO_MET : ALL_MET
            );
            _approve(escrow);
            if (status != Status.Resolved) escrow.settle();
            return escrow;
        }
        escrow = _create(t);
        if (status == Status.CancelledUnmatched) vm.warp(t.matchDeadline);
        if (status == Status.CancelledByInitiator) {
            vm.prank(client);
            escrow.cancel();
        }
    }

    // --- outcomes of three criteria, packed ---

    uint24 internal constant ALL_MET = 0x15;
    uint24 internal constant NONE_MET = 0x2a;
    uint24 internal constant ALL_UNCLEAR = 0x3f;
    /// Met, met, not met.
    uint24 internal constant TWO_MET = 0x25;

    function _pack(Outcome first, Outcome second, Outcome third) internal pure returns (uint24) {
        return uint24(uint8(first)) | (uint24(uint8(second)) << 2) | (uint24(uint8(third)) << 4);
    }

    // --- Backup Agents ---

    /// @dev Grants tokens to `agent` and stakes them from its allowance.
    function _stake(address agent, uint256 amount) internal {
        vm.prank(owner);
        token.grant(agent, amount);
        vm.startPrank(agent);
        token.approve(address(registry), amount);
        registry.stake(agent, amount, _noAuthorization());
        vm.stopPrank();
    }

    /// @dev Makes the first `count` agents eligible for disputes from the next second on, with the operator as
    /// delegate.
    function _stakeAgents(uint256 count) internal {
        for (uint256 i = 0; i < count; ++i) {
            _delegate(agents[i]);
            _stake(agents[i], ELIGIBILITY_STAKE);
        }
        vm.warp(_now() + 1);
    }

    function _saltOf(address agent) internal pure returns (bytes32) {
        return keccak256(abi.encode("salt", agent));
    }

    function _commitment(WorkingContractEscrow escrow, address agent, uint24 votes) internal view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(escrow), agent, votes, _saltOf(agent)));
    }

    function _vote(WorkingContractEscrow escrow, address agent, uint24 votes) internal {
        bytes32 commitment = _commitment(escrow, agent, votes);
        Authorization memory bond = _authorize(agent, address(escrow), _voteBondOf(escrow.terms()));
        vm.prank(operator);
        escrow.vote(agent, commitment, bond);
    }

    function _openVote(WorkingContractEscrow escrow, address agent, uint24 votes) internal {
        escrow.openVote(agent, votes, _saltOf(agent));
    }

    function _openVotes(WorkingContractEscrow escrow, uint24[] memory votes) internal {
        for (uint256 i = 0; i < votes.length; ++i) {
            _openVote(escrow, agents[i], votes[i]);
        }
    }

    /// @dev A disputed escrow whose staked agents cast the given votes, at the end of the window.
    function _votedBy(Terms memory t, uint24[] memory votes) internal returns (WorkingContractEscrow escrow) {
        _stakeAgents(votes.length);
        escrow = _disputed(t);
        for (uint256 i = 0; i < votes.length; ++i) {
            _vote(escrow, agents[i], votes[i]);
        }
        vm.warp(_now() + t.parameters.baVotingWindow);
    }

    /// @dev The same, with every vote opened and tallied.
    function _talliedBy(Terms memory t, uint24[] memory votes) internal returns (WorkingContractEscrow escrow) {
        escrow = _votedBy(t, votes);
        _openVotes(escrow, votes);
        escrow.tally();
    }

    function _ballots(uint24 a, uint24 b, uint24 c) internal pure returns (uint24[] memory votes) {
        votes = new uint24[](3);
        (votes[0], votes[1], votes[2]) = (a, b, c);
    }

    // --- assertions ---

    function assertStatus(WorkingContractEscrow escrow, Status expected) internal view {
        assertEq(uint8(escrow.status()), uint8(expected), "status");
    }

    function _expectWrongStatus(Status actual, Status expected) internal {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.WrongStatus.selector, actual, expected));
    }

    function _expectNotParty(address caller, address party) internal {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.NotParty.selector, caller, party));
    }

    /// @dev `caller`'s call fails in every status but one.
    function _assertOnlyIn(Status status, address caller, bytes memory call) internal {
        for (uint256 i = 0; i <= uint256(type(Status).max); ++i) {
            if (Status(i) == status) continue;
            address other = address(_escrowIn(Status(i)));
            _expectWrongStatus(Status(i), status);
            _callAs(caller, other, call);
        }
    }

    /// @dev None of `callers` can do what only `party` may.
    function _assertNotParty(address party, address[3] memory callers, address target, bytes memory call) internal {
        for (uint256 i = 0; i < callers.length; ++i) {
            _expectNotParty(callers[i], party);
            _callAs(callers[i], target, call);
        }
    }

    function _callAs(address caller, address target, bytes memory call) internal {
        vm.prank(caller);
        (bool success, bytes memory reason) = target.call(call);
        if (success) return;
        assembly ("memory-safe") {
            revert(add(reason, 32), mload(reason))
        }
    }

    function _expectInsufficientUnbookedBalance(uint256 balance, uint256 bookedAfter) internal {
        vm.expectRevert(
            abi.encodeWithSelector(IWorkingContractEscrow.InsufficientUnbookedBalance.selector, balance, bookedAfter)
        );
    }

    function _expectAuthorizationSpent(address payer, bytes32 nonce) internal {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.AuthorizationSpent.selector, payer, nonce));
    }

    function _expectNotPayerOrOperator(address caller, address payer) internal {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.NotPayerOrOperator.selector, caller, payer));
    }

    function _expectPaymentFailed(address payer, uint256 amount) internal {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.PaymentFailed.selector, payer, amount));
    }

    function assertBalance(address account, uint256 expected, string memory label) internal view {
        assertEq(usd.balanceOf(account), expected, string.concat("balance of ", label));
    }
}
