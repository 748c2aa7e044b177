// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsinstall "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	apiregistrationinstall "k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	"k8s.io/kube-aggregator/pkg/registry/apiservice"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/extensions/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install"

	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/certificates"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/discovery"
	"k8s.io/kubernetes/pkg/apis/flowcontrol"
	"k8s.io/kubernetes/pkg/apis/networking"
	"k8s.io/kubernetes/pkg/apis/node"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/kubernetes/pkg/apis/rbac"
	"k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/apis/storage"
	"k8s.io/kubernetes/pkg/apis/storagemigration"
	"k8s.io/kubernetes/pkg/capabilities"

	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	certificatesigningrequest "k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/certificates/clustertrustbundle"
	"k8s.io/kubernetes/pkg/registry/certificates/podcertificaterequest"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/coordination/leasecandidate"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	noderegistry "k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/ipaddress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/networking/servicecidr"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/devicetaintrule"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/podgroup"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/scheduling/workload"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"
	storageversionmigration "k8s.io/kubernetes/pkg/registry/storagemigration/storagemigration"
)

// strategy is what the API server does with an object of a kind before it stores it.
type strategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

// row assigns a strategy to an internal type, and so to the kinds that have this internal type.
type row struct {
	internal runtime.Object
	strategy strategy
}

// rows lists the strategies that the API server uses, without those of subresources and of reviews, which are never
// stored.
func rows() []row {
	return []row{
		{&admissionregistration.MutatingAdmissionPolicy{}, mutatingadmissionpolicy.NewStrategy(nil, nil)},
		{&admissionregistration.MutatingAdmissionPolicyBinding{},
			mutatingadmissionpolicybinding.NewStrategy(nil, nil, nil)},
		{&admissionregistration.MutatingWebhookConfiguration{}, mutatingwebhookconfiguration.Strategy},
		{&admissionregistration.ValidatingAdmissionPolicy{}, validatingadmissionpolicy.NewStrategy(nil, nil)},
		{&admissionregistration.ValidatingAdmissionPolicyBinding{},
			validatingadmissionpolicybinding.NewStrategy(nil, nil, nil)},
		{&admissionregistration.ValidatingWebhookConfiguration{}, validatingwebhookconfiguration.Strategy},
		{&apiextensions.CustomResourceDefinition{}, customresourcedefinition.NewStrategy(legacyscheme.Scheme)},
		{&apiregistration.APIService{}, apiservice.NewStrategy(legacyscheme.Scheme)},
		{&apps.ControllerRevision{}, controllerrevision.Strategy},
		{&apps.DaemonSet{}, daemonset.Strategy},
		{&apps.Deployment{}, deployment.Strategy},
		{&apps.ReplicaSet{}, replicaset.Strategy},
		{&apps.StatefulSet{}, statefulset.Strategy},
		{&autoscaling.HorizontalPodAutoscaler{}, horizontalpodautoscaler.Strategy},
		{&batch.CronJob{}, cronjob.Strategy},
		{&batch.Job{}, job.Strategy},
		{&certificates.CertificateSigningRequest{}, certificatesigningrequest.Strategy},
		{&certificates.ClusterTrustBundle{}, clustertrustbundle.Strategy},
		{&certificates.PodCertificateRequest{}, podcertificaterequest.NewStrategy()},
		{&coordination.Lease{}, lease.Strategy},
		{&coordination.LeaseCandidate{}, leasecandidate.Strategy},
		{&core.ConfigMap{}, configmap.Strategy},
		{&core.Endpoints{}, endpoint.Strategy},
		{&core.Event{}, event.Strategy},
		{&core.LimitRange{}, limitrange.Strategy},
		{&core.Namespace{}, namespace.Strategy},
		{&core.Node{}, noderegistry.Strategy},
		{&core.PersistentVolume{}, persistentvolume.Strategy},
		{&core.PersistentVolumeClaim{}, persistentvolumeclaim.Strategy},
		{&core.Pod{}, pod.Strategy},
		{&core.PodTemplate{}, podtemplate.Strategy},
		{&core.ReplicationController{}, replicationcontroller.Strategy},
		{&core.ResourceQuota{}, resourcequota.Strategy},
		{&core.Secret{}, secret.Strategy},
		{&core.Service{}, service.Strategy},
		{&core.ServiceAccount{}, serviceaccount.Strategy},
		{&discovery.EndpointSlice{}, endpointslice.Strategy},
		{&flowcontrol.FlowSchema{}, flowschema.Strategy},
		{&flowcontrol.PriorityLevelConfiguration{}, prioritylevelconfiguration.Strategy},
		{&networking.IPAddress{}, ipaddress.Strategy},
		{&networking.Ingress{}, ingress.Strategy},
		{&networking.IngressClass{}, ingressclass.Strategy},
		{&networking.NetworkPolicy{}, networkpolicy.Strategy},
		{&networking.ServiceCIDR{}, servicecidr.Strategy},
		{&node.RuntimeClass{}, runtimeclass.Strategy},
		{&policy.PodDisruptionBudget{}, poddisruptionbudget.Strategy},
		{&rbac.ClusterRole{}, clusterrole.Strategy},
		{&rbac.ClusterRoleBinding{}, clusterrolebinding.Strategy},
		{&rbac.Role{}, role.Strategy},
		{&rbac.RoleBinding{}, rolebinding.Strategy},
		{&resource.DeviceClass{}, deviceclass.Strategy},
		{&resource.DeviceTaintRule{}, devicetaintrule.Strategy},
		{&resource.ResourceClaim{}, resourceclaim.NewStrategy(namespaces{}, nil)},
		{&resource.ResourceClaimTemplate{}, resourceclaimtemplate.NewStrategy(namespaces{})},
		{&resource.ResourceSlice{}, resourceslice.Strategy},
		{&scheduling.PodGroup{}, podgroup.NewStrategy()},
		{&scheduling.PriorityClass{}, priorityclass.Strategy},
		{&scheduling.Workload{}, workload.Strategy},
		{&storage.CSIDriver{}, csidriver.Strategy},
		{&storage.CSINode{}, csinode.Strategy},
		{&storage.CSIStorageCapacity{}, csistoragecapacity.Strategy},
		{&storage.StorageClass{}, storageclass.Strategy},
		{&storage.VolumeAttachment{}, volumeattachment.Strategy},
		{&storage.VolumeAttributesClass{}, volumeattributesclass.Strategy},
		{&storagemigration.StorageVersionMigration{}, storageversionmigration.Strategy},
	}
}

func init() {
	capabilities.Setup(true, 0) // --allow-privileged, as installers of clusters set it
	apiextensionsinstall.Install(legacyscheme.Scheme)
	apiregistrationinstall.Install(legacyscheme.Scheme)
}
