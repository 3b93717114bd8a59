// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IBackupAgentRegistry} from "../../../contracts/interfaces/IBackupAgentRegistry.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Authorization, Parameters, Status} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract VoteTest is BaseTest {
    uint256 internal constant VOTE_BOND = 7.5e6;
    bytes32 internal constant COMMITMENT = keccak256("commitment");

    WorkingContractEscrow internal escrow;
    address internal agent;
    uint40 internal closesAt;

    function setUp() public override {
        super.setUp();
        agent = agents[0];
        _stakeAgents(4);
        escrow = _disputed(_newTerms());
        closesAt = _now() + 24 hours;
    }

    function test_RevertGiven_NotDisputed() public {
        _assertOnlyIn(
            Status.Disputed, agent, abi.encodeCall(IWorkingContractEscrow.vote, (agent, COMMITMENT, _noAuthorization()))
        );
    }

    function test_RevertGiven_WindowJustClosed() public {
        Authorization memory bond = _authorize(agent, address(escrow), VOTE_BOND);
        vm.warp(closesAt);
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.VotingClosed.selector, closesAt));
        _carry(agent, bond);

        vm.warp(closesAt - 1);
        _carry(agent, bond);
    }

    function test_RevertWhen_CallerNeitherAgentNorItsOperator() public {
        Authorization memory bond = _authorize(agent, address(escrow), VOTE_BOND);
        _expectNotParty(stranger, agent);
        vm.prank(stranger);
        escrow.vote(agent, COMMITMENT, bond);
    }

    function test_WhenNonceIsTheHashOfTheCommitment() public {
        address independent = agents[5];
        _stake(independent, ELIGIBILITY_STAKE);
        vm.warp(_now() + 1);
        escrow = _disputed(_newTerms());
        bytes32 nonce = keccak256(abi.encode(COMMITMENT));
        Authorization memory bond = _authorizeWith(nonce, address(usd), independent, address(escrow), VOTE_BOND);
        bytes32 other = keccak256("other votes");
        _expectNotParty(operator, independent);
        vm.prank(operator);
        escrow.vote(independent, other, bond);
        _expectNotPayerOrOperator(stranger, independent);
        vm.prank(stranger);
        escrow.vote(independent, COMMITMENT, bond);

        _carry(independent, bond);
        assertEq(escrow.ballotOf(independent), uint256(COMMITMENT), "ballot");
    }

    /// Such a bond's authorization does not sign the votes: anyone who holds it could cast any votes with it.
    function test_RevertGiven_AgentNeverDelegatedOrRevoked() public {
        address independent = agents[5];
        _stake(independent, ELIGIBILITY_STAKE);
        vm.warp(_now() + 1);
        escrow = _disputed(_newTerms());
        Authorization memory bond = _authorize(independent, address(escrow), VOTE_BOND);
        // Nor is the nonce itself a commitment that the payer chose.
        bytes32[2] memory chosen = [COMMITMENT, bond.nonce];
        for (uint256 i = 0; i < chosen.length; ++i) {
            _expectNotParty(operator, independent);
            vm.prank(operator);
            escrow.vote(independent, chosen[i], bond);
        }

        vm.prank(independent);
        escrow.vote(independent, COMMITMENT, bond);

        vm.prank(agent);
        delegation.revoke(agent, operator);
        bond = _authorize(agent, address(escrow), VOTE_BOND);
        _expectNotParty(operator, agent);
        _carry(agent, bond);
    }

    /// Otherwise a stolen Relay signer could turn a Worker Stake that lost its race into the bond of false votes.
    function test_RevertWhen_AuthorizationIsForAnotherAction() public {
        Authorization memory stake = _authorizeReceipt(agent, address(escrow), VOTE_BOND);
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.CommitmentMismatch.selector, agent));
        _carry(agent, stake);
    }

    function test_RevertWhen_AgentIsParty() public {
        address[2] memory parties = [client, worker];
        for (uint256 i = 0; i < parties.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.PartyCannotVote.selector, parties[i]));
            vm.prank(parties[i]);
            escrow.vote(parties[i], COMMITMENT, _noAuthorization());
        }
    }

    function test_RevertGiven_Voted() public {
        _vote(escrow, agent, ALL_MET);
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.AlreadyVoted.selector, agent));
        vm.prank(agent);
        escrow.vote(agent, COMMITMENT, _noAuthorization());
    }

    function test_RevertWhen_CommitmentCouldBeOpenedVotes() public {
        uint256[3] memory small = [0, (1 << 24) | uint256(ALL_MET), (1 << 27) - 1];
        for (uint256 i = 0; i < small.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.CommitmentMismatch.selector, agent));
            vm.prank(agent);
            escrow.vote(agent, bytes32(small[i]), _noAuthorization());
        }
    }

    function test_RevertGiven_NotStakedEnough() public {
        _assertNotEligible(stranger, 0);

        _stake(stranger, ELIGIBILITY_STAKE - 1);
        vm.warp(_now() + 1);
        escrow = _disputed(_newTerms());
        _assertNotEligible(stranger, ELIGIBILITY_STAKE - 1);
    }

    /// Otherwise whoever can get tokens could pack the jury of a contract that is already running.
    function test_RevertGiven_StakedAtOrAfterTheMatch() public {
        escrow = _matched(_newTerms());
        _stake(agents[5], ELIGIBILITY_STAKE);
        vm.warp(_now() + 1 days);
        _stake(agents[6], ELIGIBILITY_STAKE);
        vm.warp(_now() + 1 days);
        _deliver(escrow, 0);
        _dispute(escrow);
        for (uint256 i = 5; i < 7; ++i) {
            _assertNotEligible(agents[i], ELIGIBILITY_STAKE);
        }
    }

    function test_RevertGiven_LeftBeforeTheMatch() public {
        vm.prank(agent);
        registry.requestUnstake(agent);
        vm.warp(_now() + 1);
        escrow = _disputed(_newTerms());
        _assertNotEligible(agent, ELIGIBILITY_STAKE);
    }

    /// Otherwise an operator could empty the jury of a running contract: it can unstake for whoever delegated that.
    function test_GivenLeavingSinceTheMatch() public {
        vm.prank(operator);
        registry.requestUnstake(agent);
        _vote(escrow, agent, ALL_MET);

        (,, uint40 lockedUntil,,) = registry.stakes(agent);
        vm.warp(lockedUntil - 1);
        vm.expectRevert(abi.encodeWithSelector(IBackupAgentRegistry.NotReleasable.selector, agent, lockedUntil));
        registry.withdrawStake(agent);
        vm.warp(lockedUntil);
        registry.withdrawStake(agent);
    }

    function test_RevertWhen_BondShort() public {
        Authorization memory bond = _authorize(agent, address(escrow), VOTE_BOND - 1);
        _expectPaymentFailed(agent, VOTE_BOND);
        _carry(agent, bond);
    }

    function test_WhenOperatorBringsSignedBond() public {
        Authorization memory bond = _authorize(agent, address(escrow), VOTE_BOND);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.VoteSealed(agent, COMMITMENT, VOTE_BOND);
        _carry(agent, bond);
        assertStatus(escrow, Status.Disputed);
        assertEq(escrow.ballotOf(agent), uint256(COMMITMENT), "ballot");
        assertEq(escrow.jury().sealedVotes, 1, "sealed votes");
        assertBalance(agent, FUNDS - VOTE_BOND, "agent");
        assertBalance(address(escrow), PRICE + STAKE + BOND + VOTE_BOND, "escrow");
        assertEq(escrow.booked(), PRICE + STAKE + BOND + VOTE_BOND, "booked");
        (,, uint40 lockedUntil,,) = registry.stakes(agent);
        assertEq(lockedUntil, closesAt + 24 hours, "stake locked until");
    }

    function test_RevertGiven_RecruitCount_WhenNotDrawn() public {
        _recruit(2);
        vm.warp(_now() + 12 hours - 1);
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.NotDrawn.selector, agent, _now() + 1));
        vm.prank(agent);
        escrow.vote(agent, COMMITMENT, _noAuthorization());

        vm.warp(_now() + 1);
        _vote(escrow, agent, ALL_MET);
        assertEq(escrow.jury().sealedVotes, 1, "sealed votes");
    }

    function test_GivenRecruitCount_WhenDrawn() public {
        _recruit(2);
        vm.roll(vm.getBlockNumber() + 2);
        vm.setBlockhash(vm.getBlockNumber() - 1, keccak256("seed"));
        escrow.draw();
        uint256 voted;
        for (uint256 i = 0; i < 4; ++i) {
            if (!escrow.isDrawn(agents[i])) continue;
            _vote(escrow, agents[i], ALL_MET);
            ++voted;
        }
        assertEq(voted, 2, "drawn agents who voted");
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.PanelFull.selector, 2));
        vm.prank(agents[5]);
        escrow.vote(agents[5], COMMITMENT, _noAuthorization());
    }

    function _carry(address voter, Authorization memory bond) private {
        vm.prank(operator);
        escrow.vote(voter, COMMITMENT, bond);
    }

    function _recruit(uint8 seats) private {
        Parameters memory p = _defaultParameters();
        p.baRecruitCount = seats;
        _setParameters(p);
        escrow = _disputed(_newTerms());
    }

    function _assertNotEligible(address account, uint256 staked) private {
        vm.expectRevert(
            abi.encodeWithSelector(IBackupAgentRegistry.NotEligible.selector, account, staked, ELIGIBILITY_STAKE)
        );
        vm.prank(account);
        escrow.vote(account, COMMITMENT, _noAuthorization());
    }
}
