// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {Authorization, Outcome, Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

/// @notice One dispute, with the service gone after each of its steps: the people take the remaining steps themselves,
/// with the same result to the unit. Random histories are in ProtocolInvariantTest.
contract ServiceGoneTest is BaseTest {
    uint256 internal constant VOTERS = 3;
    uint256 internal constant FIRST_VOTE = 4;
    uint256 internal constant CLOSE = FIRST_VOTE + VOTERS;
    uint256 internal constant FIRST_OPENING = CLOSE + 1;
    uint256 internal constant TALLY = FIRST_OPENING + VOTERS;
    uint256 internal constant SETTLE = TALLY + 1;
    uint256 internal constant FIRST_CLAIM = SETTLE + 1;
    uint256 internal constant STEPS = FIRST_CLAIM + VOTERS;

    Terms internal t;
    WorkingContractEscrow internal escrow;
    uint24[] internal votes;
    bool internal serviceGone;

    function setUp() public override {
        super.setUp();
        _stakeAgents(VOTERS);
        t = _newTerms();
        escrow = WorkingContractEscrow(factory.predict(t));
        votes = _ballots(TWO_MET, TWO_MET, _pack(Outcome.Met, Outcome.Unclear, Outcome.Met));
    }

    function test_AfterEachStep() public {
        uint256 start = vm.snapshotState();
        for (uint256 last = 0; last <= STEPS; ++last) {
            for (uint256 step = 0; step < STEPS; ++step) {
                if (step == last) _removeService();
                _take(step);
            }
            _assertPaid(string.concat("gone before step ", vm.toString(last)));
            vm.revertToState(start);
        }
    }

    /// No signer is left, and no one controls treasury, reviewer or owner.
    function _removeService() private {
        serviceGone = true;
        vm.prank(owner);
        relay.setSigner(signer, false);
    }

    function _take(uint256 step) private {
        if (step == 0) _open();
        else if (step == 1) _match();
        else if (step == 2) _deliver(escrow, 0);
        else if (step == 3) _raise();
        else if (step < CLOSE) _seal(step - FIRST_VOTE);
        else if (step == CLOSE) vm.warp(_now() + t.parameters.baVotingWindow);
        else if (step < TALLY) _openOwn(step - FIRST_OPENING);
        else if (step == TALLY) _tally();
        else if (step == SETTLE) _settle();
        else _claimOwn(step - FIRST_CLAIM);
    }

    function _open() private {
        Authorization memory deposit = _payment(client, PRICE);
        vm.prank(serviceGone ? client : operator);
        factory.deploy(_packed(t));
        vm.prank(serviceGone ? client : operator);
        escrow.open(deposit);
    }

    function _match() private {
        Authorization memory deposit = _payment(worker, STAKE);
        vm.prank(serviceGone ? worker : operator);
        escrow.accept(worker, deposit);
    }

    function _raise() private {
        Authorization memory bond = _payment(client, BOND);
        vm.prank(serviceGone ? client : operator);
        escrow.dispute(bond);
    }

    function _seal(uint256 voter) private {
        Authorization memory bond = _payment(agents[voter], _voteBondOf(t));
        bytes32 commitment = _commitment(escrow, agents[voter], votes[voter]);
        vm.prank(serviceGone ? agents[voter] : operator);
        escrow.vote(agents[voter], commitment, bond);
    }

    function _openOwn(uint256 voter) private {
        vm.prank(serviceGone ? agents[voter] : operator);
        escrow.openVote(agents[voter], votes[voter], _saltOf(agents[voter]));
    }

    function _tally() private {
        vm.prank(serviceGone ? worker : operator);
        escrow.tally();
    }

    function _settle() private {
        vm.prank(serviceGone ? client : operator);
        escrow.settle();
    }

    function _claimOwn(uint256 voter) private {
        vm.prank(serviceGone ? agents[voter] : operator);
        escrow.claim(agents[voter]);
    }

    /// @dev Signed for the operator; without it, an allowance is enough.
    function _payment(address payer, uint256 amount) private returns (Authorization memory) {
        if (!serviceGone) return _authorize(payer, address(escrow), amount);
        vm.prank(payer);
        usd.approve(address(escrow), amount);
        return _noAuthorization();
    }

    /// @dev The published result for two of three criteria met.
    function _assertPaid(string memory when) private view {
        assertEq(uint8(escrow.status()), uint8(Status.SettledPartial), when);
        assertEq(usd.balanceOf(client), FUNDS - PRICE - BOND + 18_166_667, string.concat("client, ", when));
        assertEq(usd.balanceOf(worker), FUNDS - STAKE + 35e6, string.concat("worker, ", when));
        assertEq(usd.balanceOf(treasury), 1_833_333, string.concat("treasury, ", when));
        uint256[3] memory jury = [uint256(9.125e6), 9.125e6, 4.25e6];
        uint256[3] memory tokens = [uint256(30e18), 30e18, 10e18];
        for (uint256 i = 0; i < VOTERS; ++i) {
            assertEq(usd.balanceOf(agents[i]), FUNDS - 7.5e6 + jury[i], string.concat("voter, ", when));
            assertEq(token.balanceOf(agents[i]), tokens[i], string.concat("tokens, ", when));
        }
        assertEq(usd.balanceOf(address(escrow)), 0, string.concat("escrow, ", when));
    }
}
