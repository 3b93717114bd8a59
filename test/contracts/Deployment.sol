// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {AgentDelegation} from "../../contracts/AgentDelegation.sol";
import {BackupAgentRegistry} from "../../contracts/BackupAgentRegistry.sol";
import {ProtocolToken} from "../../contracts/ProtocolToken.sol";
import {Relay} from "../../contracts/Relay.sol";
import {WorkingContractFactory} from "../../contracts/WorkingContractFactory.sol";
import {IBackupAgentRegistry} from "../../contracts/interfaces/IBackupAgentRegistry.sol";
import {IEIP3009} from "../../contracts/interfaces/IEIP3009.sol";
import {IProtocolToken} from "../../contracts/interfaces/IProtocolToken.sol";
import {Dependencies} from "../../contracts/interfaces/IWorkingContractEscrow.sol";
import {IWorkingContractFactory} from "../../contracts/interfaces/IWorkingContractFactory.sol";
import {Authorization, Delegation, Parameters} from "../../contracts/types/Types.sol";

/// @notice The protocol around a stablecoin on a fresh chain, and what its agents sign.
///
/// Deployed from the artifacts in `out/` rather than with `new`, so that tests cover the production code but compile
/// without the optimizer.
abstract contract DeploymentTest is Test {
    bytes32 internal constant TRANSFER_TYPEHASH = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 internal constant RECEIVE_TYPEHASH = keccak256(
        "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    uint128 internal constant DAILY_CAP = 100_000e18;

    Relay internal relay;
    AgentDelegation internal delegation;
    BackupAgentRegistry internal registry;
    ProtocolToken internal token;
    WorkingContractFactory internal factory;

    function _deployAround(
        address asset,
        address owner,
        address treasury,
        address reviewer,
        string memory domain,
        Parameters memory parameters
    ) internal {
        uint256 nonce = vm.getNonce(address(this));
        address registryAt = vm.computeCreateAddress(address(this), nonce + 1);
        address tokenAt = vm.computeCreateAddress(address(this), nonce + 2);
        address factoryAt = vm.computeCreateAddress(address(this), nonce + 3);

        relay = Relay(deployCode("out/Relay.sol/Relay.json", abi.encode(owner, factoryAt, domain)));
        delegation = relay;
        registry = BackupAgentRegistry(
            deployCode(
                "out/BackupAgentRegistry.sol/BackupAgentRegistry.json", abi.encode(tokenAt, factoryAt, address(relay))
            )
        );
        token = ProtocolToken(
            deployCode(
                "out/ProtocolToken.sol/ProtocolToken.json",
                abi.encode(owner, factoryAt, registryAt, DAILY_CAP, uint40(0))
            )
        );
        Dependencies memory dependencies = Dependencies({
            factory: IWorkingContractFactory(factoryAt),
            asset: IEIP3009(asset),
            operator: address(relay),
            registry: IBackupAgentRegistry(registryAt),
            rewardToken: IProtocolToken(tokenAt)
        });
        factory = WorkingContractFactory(
            deployCode(
                "out/WorkingContractFactory.sol/WorkingContractFactory.json",
                abi.encode(owner, treasury, reviewer, parameters, dependencies)
            )
        );
        require(address(factory) == factoryAt && address(token) == tokenAt, "predicted addresses are off");
    }

    function _defaultParameters() internal pure returns (Parameters memory) {
        return Parameters({
            protocolFee: 500,
            workerStakeRatio: 500,
            disputeBondRatio: 500,
            backupAgentBondRatio: 500,
            earlyWithdrawalSlashRatio: 3000,
            absentNoneMetClientShare: 8000,
            baUnclearSlashRatio: 3000,
            tokenMintRewardFull: 10,
            tokenMintRewardReduced: 4,
            baEligibilityStake: 1000,
            baVotingWindow: 24 hours,
            baRecruitCount: 0,
            payoutHold: 0
        });
    }

    function _digest(
        bytes32 typehash,
        address asset,
        address payer,
        address to,
        uint256 amount,
        Authorization memory authorization
    ) internal view returns (bytes32) {
        bytes32 structHash = keccak256(
            abi.encode(
                typehash, payer, to, amount, authorization.validAfter, authorization.validBefore, authorization.nonce
            )
        );
        return keccak256(abi.encodePacked("\x19\x01", IEIP3009(asset).DOMAIN_SEPARATOR(), structHash));
    }

    function _signDelegation(uint256 key, Delegation memory d) internal view returns (bytes memory) {
        bytes memory text = bytes(delegation.challengeText(d));
        return _sign(key, keccak256(abi.encodePacked("\x19Ethereum Signed Message:\n", vm.toString(text.length), text)));
    }

    function _sign(uint256 key, bytes32 digest) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }
}
